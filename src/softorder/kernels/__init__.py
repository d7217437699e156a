"""What the library computes with, and the only place that knows native code exists."""
