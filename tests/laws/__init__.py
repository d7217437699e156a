"""What every operator must obey, whatever its method.

A law is a plain function of an operator and a problem that asserts something. The modules beside
this file are about soft top-k: operators are called as `op(scores, k, temperature=..., dim=...,
largest=..., mask=...)` and return p. Those in orderings/ are about rank, sort, permutation and
quantile. Every law knows which operators it binds.
"""
