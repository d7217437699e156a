"""The papers' experiments, one folder each; run with `softorder reproduce`, which is command.py."""
