"""The k-hot paper: Figure 9, Table 5 and Figure 8, and what its estimators are worth.

python -m experiments.khot.polynomial      Figure 9: second order against straight-through
python -m experiments.khot.root_finding    Table 5 and Figure 8: root finders
python -m experiments.khot.estimators      bias and variance of every estimator

Each prints a table, and writes its numbers to experiments/khot/results/ and its plot to
docs/figures/. With --quick, a small version that writes to reports/.
"""
