"""F-sums: Σ_i w_i u^m F^(a)(u) with u = (t_j - x_i)/τ, for sorted sources x and sorted targets t.

Ranks, their derivatives, the slope of FSum(t) = Σ_i F((t - x_i)/τ), a kernel density: all are
calls of `fsum`. It is closed under differentiation, with moment m and derivative a:

    ∂/∂t  u^m F^(a)  =  (m u^(m-1) F^(a) + u^m F^(a+1))/τ          ∂/∂x is minus that
    ∂/∂τ  u^m F^(a)  = -(m u^m F^(a) + u^(m+1) F^(a+1))/τ          and it is linear in w

`invert` solves FSum(t) = level: sorting, permutation thresholds and quantiles.

Contract. `sources` (..., m) and `targets` (..., n) are float32 or float64 of the same dtype, finite
and ascending in the first `source_count`, `target_count` places of every row (None: all); what is
beyond takes no part, whatever it is, and gives 0. `weights` is shaped as the sources (None: ones).
`temperature` is float64, counts are int64; they broadcast over the rows (...). A target may be an
unevaluated sum targets + target_rest, and so may a source, so that targets - sources is exact
nearby: rows near 10^6 with τ = 10^-6 need it. Sums are accumulated in float64 and returned in the
dtype of the sources.

    0 <= moment <= derivative <= 3

At a kink: f(±1/2) = 0 for uniform; f'(0) = 0 and f''(0) = f(0) for laplace.

Cost: O(m + n) for laplace and uniform (another factor log m in plain torch) and, compiled, for
logistic, normal and cauchy; O(m·n) time and O(m + n) memory for the user's and for these in plain
torch. There the compiled sums of many pairs are accurate to 1e-15 Σ_i |w_i| max |G(v)| over
|v - u_i| <= 1, with G(u) = u^m F^(a)(u): csrc/fsum/smooth_sum.hpp. For cauchy the factor is 1e-11
in float32, and v is as far from u_i as 1 + |u_i|/3: csrc/fsum/cauchy_sum.hpp.

The operators are not differentiable: relaxations/sums.py and relaxations/roots.py are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from softorder.densities import BUILT_IN, Density, UserDensity
from softorder.kernels import _triton
from softorder.kernels._density_numbers import COMPILED, number_of
from softorder.kernels._operators import Operator, define_vmap
from softorder.kernels.fsum import cpu, reference

_gpu = _triton.Module("softorder.kernels.fsum.triton")
_LINEAR = (number_of(BUILT_IN["laplace"]), number_of(BUILT_IN["uniform"]))
_COMPILED = range(COMPILED)


class Roots(NamedTuple):
    """Thresholds t = centre + rest in the dtype of the sources.

    For laplace and uniform the centre is a source next to t. centre + rest ascends but for
    roundings.
    """

    centre: Tensor
    rest: Tensor


def fsum(
    sources: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    temperature: Tensor,
    density: str | Density,
    *,
    derivative: int = 0,
    moment: int = 0,
    source_rest: Tensor | None = None,
    target_rest: Tensor | None = None,
    source_count: Tensor | None = None,
    target_count: Tensor | None = None,
) -> Tensor:
    """Σ_i w_i u^moment F^(derivative)(u), u = (t_j - x_i)/τ, for every target; 0 beyond the count.

    >>> import torch
    >>> scores, temperature = torch.tensor([1.0, 2.0, 4.0]), torch.tensor(0.1).double()
    >>> 0.5 + fsum(scores, scores, None, temperature, "laplace")  # ranks
    tensor([1.0000, 2.0000, 3.0000])
    """
    if not 0 <= moment <= derivative <= 3:
        raise ValueError(
            "fsum needs 0 <= moment <= derivative <= 3, "
            f"but got moment = {moment} and derivative = {derivative}"
        )
    known = _known(density)  # lives as long as its number is in use
    return _fsum.dispatched(
        sources.detach(),
        _detached(source_rest),
        targets.detach(),
        _detached(target_rest),
        _detached(weights),
        temperature.detach(),
        source_count,
        target_count,
        number_of(known),
        derivative,
        moment,
    )


def invert(
    sources: Tensor,
    levels: Tensor,
    temperature: Tensor,
    density: str | Density,
    *,
    count: Tensor | None = None,
) -> Roots:
    """t with Σ_i F((t_j - x_i)/τ) = level_j, for ascending float64 levels (..., n) or (n,).

    A level <= 0 gives centre = -inf, a level >= count gives +inf, with rest = 0. On a plateau,
    where any t fits to working precision, t balances the logarithms of what is missing on both
    sides (the middle, for uniform), strictly inside the gap.

    >>> import torch
    >>> scores, temperature = torch.tensor([1.0, 2.0, 4.0]), torch.tensor(0.01).double()
    >>> roots = invert(scores, torch.tensor([0.5, 1, 1.5, 2, 3]).double(), temperature, "laplace")
    >>> roots.centre + roots.rest
    tensor([1.0000, 1.5000, 2.0000, 3.0000,    inf])
    """
    levels = levels.detach().double().expand(*sources.shape[:-1], levels.shape[-1])
    known = _known(density)
    found = _invert.dispatched(
        sources.detach(), levels, temperature.detach(), count, number_of(known)
    )
    return Roots(*found)


def _known(density: str | Density) -> Density:
    if isinstance(density, str):
        return BUILT_IN[density]
    known = isinstance(density, UserDensity) or density in BUILT_IN.values()
    return density if known else UserDensity(density)


def _detached(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.detach()


# ---- the operators ------------------------------------------------------------------------------


def fake_fsum(
    sources: Tensor, source_rest: Tensor | None, targets: Tensor, *others: object
) -> Tensor:
    return targets.new_empty(targets.shape)


def fake_invert(sources: Tensor, levels: Tensor, *others: object) -> tuple[Tensor, Tensor]:
    return sources.new_empty(levels.shape), sources.new_empty(levels.shape)


def _compiled(*arguments: Any) -> bool:
    return arguments[8] in _COMPILED


def _fsum_on_gpu(*arguments: Any) -> Tensor:
    return (_gpu.fsum if arguments[8] in _LINEAR else reference.fsum)(*arguments)


def _compiled_roots(*arguments: Any) -> bool:
    return arguments[4] in _COMPILED


def _roots_on_gpu(*arguments: Any) -> tuple[Tensor, Tensor]:
    return (_gpu.invert if arguments[4] in _LINEAR else reference.invert)(*arguments)


_fsum = Operator(
    "fsum(Tensor sources, Tensor? source_rest, Tensor targets, Tensor? target_rest,"
    " Tensor? weights, Tensor temperature, Tensor? source_count, Tensor? target_count,"
    " int density, int derivative, int moment) -> Tensor",
    reference=reference.fsum,
    cpu=cpu.fsum,
    triton=_fsum_on_gpu,
    compiled=_compiled,
    fake=fake_fsum,
)
_invert = Operator(
    "fsum_invert(Tensor sources, Tensor levels, Tensor temperature, Tensor? count, int density)"
    " -> (Tensor centre, Tensor rest)",
    reference=reference.invert,
    cpu=cpu.invert,
    triton=_roots_on_gpu,
    compiled=_compiled_roots,
    fake=fake_invert,
)
define_vmap("fsum", matrices=(0, 1, 2, 3, 4), numbers=(5, 6, 7))
define_vmap("fsum_invert", matrices=(0, 1), numbers=(2, 3))
