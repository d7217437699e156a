"""The map: every public operator × method × pass × size, beside the best known alternative.

entries.py        what is measured: lines of the registries, bound to a case
alternatives.py   with what: torch's own operator for each of ours, and peers of single methods
patience.py       what would take too long
measure.py        how the times of one operator at one size are taken
keeping.py        memory: the peak of a forward pass, what is kept, what a formula needs
results.py        what was found: cells, the table, JSON
picture.py        the heat map
suite.py          what `softorder bench map` does
"""

from benchmarks.map.suite import names, run

__all__ = ["names", "run"]
