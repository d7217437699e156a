"""The only argument validation. Everything below works on arguments that passed here.

Messages name the argument, what was given, and what is allowed. Numbers and shapes are always
checked. The entries of tensors are checked too, except where they cannot be seen: under
torch.compile, torch.export, torch.func and fake tensors.

What many operators take is checked by a function of this package, `_check.k(...)`; what belongs to
one part of the library by a function of the module named after it, `_check.beams.search(...)`.
"""

from softorder._check import (
    attention,
    beams,
    distributed,
    estimators,
    gates,
    methods,
    neighbours,
    targets,
    weights,
)
from softorder._check._kinds import dense, no_wrapper, unpacked
from softorder._check._mode import (
    PLAIN,
    at_hand,
    eager,
    finite,
    known_finite,
    plain,
    traceable,
    transformed,
)
from softorder._check._options import (
    between,
    choice,
    count,
    flag,
    max_iterations,
    needed,
    one_of,
    positive,
    reduction,
    share,
    subclass,
    together,
    tolerance,
)
from softorder._check._per_row import (
    k,
    k_alone,
    k_among,
    k_below,
    positive_k,
    q,
    q_alone,
    temperature,
    temperature_alone,
    whole_k,
)
from softorder._check._tensors import (
    floating,
    floating_dtype,
    mask,
    mask_shape,
    points,
    probs,
    scores,
    several,
    whole,
)
from softorder._check._values import PerRow, broadcast_over_rows

__all__ = [
    "PLAIN",
    "PerRow",
    "at_hand",
    "attention",
    "beams",
    "between",
    "broadcast_over_rows",
    "choice",
    "count",
    "dense",
    "distributed",
    "eager",
    "estimators",
    "finite",
    "flag",
    "floating",
    "floating_dtype",
    "gates",
    "k",
    "k_alone",
    "k_among",
    "k_below",
    "known_finite",
    "mask",
    "mask_shape",
    "max_iterations",
    "methods",
    "needed",
    "neighbours",
    "no_wrapper",
    "one_of",
    "plain",
    "points",
    "positive",
    "positive_k",
    "probs",
    "q",
    "q_alone",
    "reduction",
    "scores",
    "several",
    "share",
    "subclass",
    "targets",
    "temperature",
    "temperature_alone",
    "together",
    "tolerance",
    "traceable",
    "transformed",
    "unpacked",
    "weights",
    "whole",
    "whole_k",
]
