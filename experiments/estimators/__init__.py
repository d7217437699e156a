"""Bias and deviation of gradient estimators for k-hot draws: k-hot sampling, appendix C."""
