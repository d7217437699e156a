"""Experiments, one folder each: `python -m experiments.NAME` from the root of a checkout."""
