"""Training through a soft beam search: SOFT top-k (Xie et al. 2020), appendix D."""
