"""The threshold of a sigmoid top-k: k-hot sampling, appendix A, table 5."""
