"""Nearest neighbours in a learned space: SOFT top-k (Xie et al. 2020), appendix C."""
