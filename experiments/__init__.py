"""Figures and tables of the papers, one folder per paper; each module says how it is run."""
