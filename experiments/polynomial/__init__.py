"""Polynomial programming: k-hot sampling, appendix C, figure 9."""
