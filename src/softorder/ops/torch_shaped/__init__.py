"""torch's own calls, with torch's results, and gradients that know of the scores nearby.

Names, order and defaults of arguments, shapes and tie-breaking are torch's; only the first one is
called `scores`, as everywhere here. Two rules hold for all of them:

    hard=True   the values are torch's, to the last bit; the gradient is that of the soft values
    hard=False  the soft values: means of the scores, by weights of a soft permutation

`indices` are int64 and hard, always. `weights` are soft, always.
"""

from softorder.ops.torch_shaped.extremes import argmax, argmin, max, min
from softorder.ops.torch_shaped.ordered import argsort, sort
from softorder.ops.torch_shaped.selected import kthvalue, median, topk

__all__ = ["argmax", "argmin", "argsort", "kthvalue", "max", "median", "min", "sort", "topk"]
