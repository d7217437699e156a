"""Gradient estimators for k-hot draws, all of one signature.

    estimator(law, loss=None, sample_shape=(), *, generator=None)

`law` is a `so.distributions.KHot`. Without a loss the result is draws of shape (*sample_shape,
*batch_shape, n) that carry the gradient into whatever is computed from them; with a loss, loss(x),
one number for each draw and row, whose gradient is the estimate. Only score_function must have one.

Every file has the name of its estimator behind an underscore: a module of the same name would hide
the function from whoever imports the module.
"""

from softorder.estimators._base import find
from softorder.estimators._implicit_mle import implicit_mle
from softorder.estimators._iterative_poisson import iterative_poisson
from softorder.estimators._relaxed import relaxed
from softorder.estimators._score_function import score_function
from softorder.estimators._second_order import second_order
from softorder.estimators._simple import simple
from softorder.estimators._straight_through import straight_through

__all__ = [
    "find",
    "implicit_mle",
    "iterative_poisson",
    "relaxed",
    "score_function",
    "second_order",
    "simple",
    "straight_through",
]
