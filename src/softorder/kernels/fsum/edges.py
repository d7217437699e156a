"""Scores at the edge of a gap so wide that the slope of an F-sum underflows in it.

There a root t balances the tails of both sides, Σ F(-d/τ) over the distances d to the scores of
each, and with the hazards h = f/F of both edges, at distances u τ and u' τ,

    dt = (h (dm + u dτ) + h' (dm' - u' dτ))/(h + h')

m being the mean of the scores of a side by their shares of its tails. Where these fall as e^-d/τ,
h = 1, and behind the edge e the score x_i has a share of e^(-|e - x_i|/τ). Other tails fall so fast
that the edge and its equals have it all, or, as 1/d, underflow at distances of 10^150 τ only; a
density of the user's is taken for one of these.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.densities import BUILT_IN, Density

_EXPONENTIAL = BUILT_IN["laplace"], BUILT_IN["logistic"]


def flat_below(density: Density) -> float:
    """The slope Σ f(u) of an F-sum in float64 below which all this is exact, and 1/slope too large.

    Gradients as large as 1/τ are divided by slopes. What is a power of e may be flat soon.
    """
    return 1e-150 if density in _EXPONENTIAL else 1e-250


def edge_law(density: Density, temperature: Tensor) -> tuple[Density, Tensor]:
    """The density and τ whose f((e - x_i)/τ), over their sum, are the shares of an edge e."""
    equals = torch.full_like(temperature, torch.finfo(temperature.dtype).tiny)
    return BUILT_IN["laplace"], temperature if density in _EXPONENTIAL else equals


def share_of_lower(density: Density, below: Tensor, above: Tensor) -> Tensor:
    """h/(h + h') for edges at these distances, in units of τ: a half, unless hazards grow."""
    share = torch.sigmoid(density.log_mills(above) - density.log_mills(below))
    return torch.where(share.isnan(), 0.5, share)
