"""What the library computes with, and the only place that knows native code exists.

Of it, `laplace_sum` is public: a building block that is useful by itself.
"""

from softorder.kernels.pair_sums import laplace_sum

__all__ = ["laplace_sum"]
