"""log p of one element a row, for several k: what a top-k loss needs of a threshold method.

    log p_y = log F(u_y)      u = (x - b)/τ      Σ_i F(u_i) = k

takes one threshold per row and k, and no p. With r = f(u_y)/F(u_y), q = f(u)/Σ f(u), upstream g:

    ∂L/∂x = (g r/τ) (e_y - q)      ∂L/∂τ = -(g r/τ) (u_y - <q,u>)

which the kernel of soft_topk computes from the upstream (g/p_y) e_y, or, where p_y all but
underflows, from one at a score next to the threshold. The graph keeps the scores and a few numbers
per row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.kernels import threshold
from softorder.kernels._autograd import by_autograd
from softorder.kernels._density_numbers import density_of
from softorder.kernels._operators import Operator, library
from softorder.kernels.formulas import distance, exact_distance
from softorder.methods.masses import log_masses

if TYPE_CHECKING:
    from softorder.methods.threshold import ThresholdMethod

_FAINT = -60.0  # of log p_y: from here on 1/p_y is not for float32


def log_entries(
    method: ThresholdMethod, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> Tensor:
    """log p of the elements `index` (rows,) of scores (rows, n), as float64 (rows, len(ks))."""
    number = method.number
    if number is None or not (_check.eager() or _check.traceable()):
        return log_masses(method, scores, index, ks, temperature)
    learns = torch.is_grad_enabled() and (scores.requires_grad or temperature.requires_grad)
    if learns and temperature.requires_grad:
        temperature = temperature.expand(scores.shape[:-1])
    if not _check.eager():
        return torch.ops.softorder.log_entries(scores, index, temperature, ks, number)[0]
    if learns:
        return _LogEntries.apply(scores, index, temperature, ks, number, method)
    return _forward(scores, index, temperature, ks, number)[0]


def _forward(
    scores: Tensor, index: Tensor, temperature: Tensor, ks: Sequence[int], number: int
) -> tuple[Tensor, Tensor, Tensor]:
    """log p, the thresholds, and u of the elements themselves."""
    density = density_of(number)
    b = _thresholds(scores, ks, temperature, density)
    u = _own_distance(scores, index, temperature, b)
    return density.anchored.log_cdf(u), b, u


def _fake_forward(
    scores: Tensor, index: Tensor, temperature: Tensor, ks: Sequence[int], number: int
) -> tuple[Tensor, Tensor, Tensor]:
    rows = scores.shape[0]
    log_p, u = (scores.new_empty((rows, len(ks)), dtype=torch.float64) for _ in range(2))
    return log_p, scores.new_empty((len(ks), 2, rows)), u


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, index, temperature, ks, number = inputs
    kept = scores, index, temperature, *output
    ctx.save_for_backward(*kept)
    ctx.like = [(value.shape, value.dtype) for value in kept]
    ctx.statics = ks, number


def _fused_backward(ctx: Any, upstream: Tensor, vjp: Callable) -> tuple[Tensor, Tensor | None]:
    by_temperature = ctx.needs_input_grad[2]
    saved = ctx.saved_tensors
    _check.unpacked(saved, ctx.like)
    by_scores, by_row = vjp(upstream, *saved, *ctx.statics, by_temperature)
    return by_scores, by_row if by_temperature else None


def _traced_backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    by_scores, by_row = _fused_backward(ctx, upstream, torch.ops.softorder.log_entries_vjp)
    return by_scores, None, by_row, None, None


class _LogEntries(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        index: Tensor,
        temperature: Tensor,
        ks: tuple[int, ...],
        number: int,
        method: ThresholdMethod,
    ) -> Tensor:
        inputs = scores, index, temperature, ks, number
        found = _forward(*inputs)
        _remember(ctx, inputs, found)
        ctx.method = method
        return found[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled() or not _check.eager():
            by_scores, by_temperature = _plain_backward(ctx, upstream)
        else:
            by_scores, by_temperature = _fused_backward(ctx, upstream, _vjp)
        return by_scores, None, by_temperature, None, None, None


def _plain_backward(ctx: Any, upstream: Tensor) -> list[Tensor | None]:
    scores, index, temperature, *_ = ctx.saved_tensors
    ks, _ = ctx.statics
    inputs = [v for v in (scores, temperature) if v.requires_grad]
    with torch.enable_grad():
        entries = log_masses(ctx.method, scores, index, ks, temperature)
        found = iter(torch.autograd.grad(entries, inputs, upstream, create_graph=True))
    return [next(found) if v.requires_grad else None for v in (scores, temperature)]


def _vjp(
    upstream: Tensor,
    scores: Tensor,
    index: Tensor,
    temperature: Tensor,
    log_p: Tensor,
    b: Tensor,
    u: Tensor,
    ks: Sequence[int],
    number: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores, and of the temperature of every row."""
    total, by_row = torch.zeros_like(scores), torch.zeros_like(log_p[:, 0])
    law = density_of(number).anchored
    for j in range(len(ks)):
        problem = _Problem(scores, index, temperature, b[j], law, number)
        one = problem.vjp(u[:, j], log_p[:, j], upstream[:, j], by_temperature)
        total = one[0] if j == 0 else total.add_(one[0])
        by_row += one[1]
    return total, by_row


def _fake_vjp(upstream: Tensor, scores: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape), upstream.new_empty(scores.shape[:1])


_log_entries = Operator(
    "log_entries(Tensor scores, Tensor index, Tensor temperature, int[] ks, int density)"
    " -> (Tensor log_p, Tensor b, Tensor u)",
    reference=_forward,
    fake=_fake_forward,
)
_log_entries_vjp = Operator(
    "log_entries_vjp(Tensor upstream, Tensor scores, Tensor index, Tensor temperature,"
    " Tensor log_p, Tensor b, Tensor u, int[] ks, int density, bool by_temperature)"
    " -> (Tensor grad_scores, Tensor grad_temperature)",
    reference=_vjp,
    fake=_fake_vjp,
)
torch.library.register_autograd(
    "softorder::log_entries", _traced_backward, setup_context=_remember, lib=library
)


@dataclass(frozen=True)
class _Problem:
    """One k: rows of scores, the element of each that is asked for, and the thresholds."""

    scores: Tensor
    index: Tensor
    temperature: Tensor
    b: Tensor
    law: Density
    number: int

    def vjp(
        self, u: Tensor, log_p: Tensor, upstream: Tensor, by_temperature: bool
    ) -> tuple[Tensor, Tensor]:
        """Gradients of the scores, and of temperature per row if wanted."""
        pull = _rate(self.law, u) * upstream  # g r
        weight = torch.where(pull == 0, 0.0, upstream * torch.exp(-log_p))
        faint = (log_p < _FAINT) & (pull != 0)
        if not _check.at_hand(faint):
            return self._vjp_of_all(u, pull, weight, faint, by_temperature)
        faint = faint.nonzero().squeeze(-1)
        if not len(faint):
            by_scores, _, by_row = self._kernel(self.index, weight, by_temperature)
            return by_scores, by_row
        # There a neighbour of the threshold carries the upstream, whose f does not underflow.
        most = 2 * len(faint) > len(u)  # then copying them takes longer than looking at all
        near, beside = self.nearest() if most else self.at(faint).nearest()
        near, beside = (near[faint], beside[faint]) if most else (near, beside)
        log_pdf = self.law.log_pdf(beside)
        weight[faint] = torch.where(log_pdf > _FAINT, pull[faint] * torch.exp(-log_pdf), 0.0)
        carrier = self.index.index_put((faint,), near)
        by_scores, by_k, by_row = self._kernel(carrier, weight, by_temperature)
        pull, across = pull / self.temperature, faint[log_pdf <= _FAINT]
        near, beside, faint = (v[log_pdf > _FAINT] for v in (near, beside, faint))
        share = by_k[faint] / weight[faint]
        by_scores[faint, near] = (-pull[faint] * share).to(by_scores.dtype)
        by_scores[faint, self.index[faint]] += pull[faint].to(by_scores.dtype)
        by_row[faint] -= pull[faint] * (u[faint] - beside)
        if len(across):
            found = self.at(across).vjp_in_logarithms(u[across], pull[across])
            by_scores[across], by_row[across] = found
        return by_scores, by_row

    def _vjp_of_all(
        self, u: Tensor, pull: Tensor, weight: Tensor, faint: Tensor, by_temperature: bool
    ) -> tuple[Tensor, Tensor]:
        """The same where it cannot be seen which rows are faint: all of them both ways."""
        weight = torch.where(faint, 0.0, weight)
        by_scores, _, by_row = self._kernel(self.index, weight, by_temperature)
        others, by_others = self.vjp_in_logarithms(u, pull / self.temperature)
        by_scores = torch.where(faint.unsqueeze(-1), others, by_scores)
        return by_scores, torch.where(faint, by_others, by_row)

    def at(self, rows: Tensor) -> _Problem:
        """Some of the rows."""
        tau = self.temperature if self.temperature.dim() == 0 else self.temperature[rows]
        return replace(
            self,
            scores=self.scores[rows],
            index=self.index[rows],
            temperature=tau,
            b=self.b[:, rows],
        )

    def nearest(self) -> tuple[Tensor, Tensor]:
        """The scores next to the threshold: which they are, and their u in float64."""
        near = (self.scores - self.b[0].unsqueeze(-1)).abs_().min(-1).indices
        return near, _own_distance(self.scores, near, self.temperature, self.b.unsqueeze(0))[:, 0]

    def _kernel(
        self, carrier: Tensor, weight: Tensor, by_temperature: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """That of soft_topk, for an upstream of one entry per row."""
        by_scores, (by_k, *rest) = threshold.backward_of_one(
            weight, carrier, self.scores, self.temperature, self.b, self.number, by_temperature
        )
        return by_scores, by_k, rest[0] if by_temperature else torch.zeros_like(by_k)

    def vjp_in_logarithms(self, u: Tensor, pull: Tensor) -> tuple[Tensor, Tensor]:
        """Across a gap so wide that every f underflows: q is a softmax of log f."""
        every = distance(self.scores.double(), self.b.double(), self.temperature)
        share = torch.softmax(self.law.log_pdf(every), -1)
        mean = (share * torch.nan_to_num(every, posinf=0.0, neginf=0.0)).sum(-1)
        scale = pull.unsqueeze(-1)
        by_scores = (share * -scale).scatter_add_(-1, self.index.unsqueeze(-1), scale)
        return by_scores.to(self.scores.dtype), -pull * (u - mean)


def _thresholds(scores: Tensor, ks: Sequence[int], temperature: Tensor, density: Density) -> Tensor:
    """(len(ks), 2, rows): what belongs to one k stands together, as the kernel needs it."""
    counts = (torch.full((), k, dtype=torch.float64, device=scores.device) for k in ks)
    return torch.stack([threshold.solve(scores, k, temperature, density).b for k in counts])


def _own_distance(scores: Tensor, index: Tensor, temperature: Tensor, b: Tensor) -> Tensor:
    """u of the elements themselves in float64, (rows, len(ks))."""
    own = scores.detach().gather(-1, index.unsqueeze(-1)).double()
    centre, rest = b.double().permute(1, 2, 0)
    scale = temperature.detach().reciprocal().clamp(max=torch.finfo(torch.float64).max)
    return exact_distance(own, centre, rest, scale.to(own.device).unsqueeze(-1))


def _rate(law: Density, u: Tensor) -> Tensor:
    """f(u)/F(u), the derivative of log F; 0 where log F is infinite."""
    rate = by_autograd(law.log_cdf, u)
    return torch.where(u.isfinite() & law.log_cdf(u).isfinite(), rate, 0.0)
