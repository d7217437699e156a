"""What every soft top-k must obey, whatever its method.

A law is a plain function of an operator and a problem that asserts something. Operators are
called as `op(scores, k, temperature=..., dim=..., largest=..., mask=...)` and return p.
"""
