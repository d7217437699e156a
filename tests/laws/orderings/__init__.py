"""What every soft rank, sort, permutation and quantile must obey, whatever its method.

Operators are called as `op(scores, temperature=..., dim=..., descending=..., mask=...)` and return
their results with the rows in front: see operators.py. A law names the operators that it binds; it
finds what they do differently in their `Shape`.
"""
