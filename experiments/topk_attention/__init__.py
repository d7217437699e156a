"""Top-k attention in a small transformer: SOFT top-k (Xie et al. 2020), appendix I.3."""
