"""F-sum methods: FSum(t) = Σ_i F((t - x_i)/τ), and rank, sort, permutation, quantile from it."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import BUILT_IN, Density
from softorder.kernels import order, permutation, placement
from softorder.kernels._density_numbers import NUMBERED, is_walked, number_of
from softorder.kernels._operators import Fused
from softorder.kernels.formulas import at_hand, damped, with_gradient_of
from softorder.kernels.fsum import edge_law, flat_below, share_of_lower
from softorder.kernels.order.reference import all_ranks, all_values
from softorder.kernels.permutation.reference import between, levels_of
from softorder.kernels.placement.reference import losses_between
from softorder.kernels.ragged.sorted import sort_segments
from softorder.kernels.sort import sort
from softorder.kernels.sort.rows import SortedRows, sort_rows
from softorder.relaxations import companions, fused
from softorder.relaxations._base import Method, register
from softorder.relaxations.points import few, points
from softorder.relaxations.roots import roots
from softorder.relaxations.sums import fsum

_FAST = {
    "soft_rank": "O(n log n)",
    "soft_sort": "O(n log n)",
    "soft_permutation": "O(n k)",
    "soft_quantile": "O(n log n)",
    "permutation_cross_entropy": "O(n log n)",
    "fsum": "O((n + m) log(n + m))",
    "fsum_inverse": "O((n + m) log(n + m))",
}
_TILED = (
    _FAST
    | dict.fromkeys(("soft_rank", "soft_sort", "permutation_cross_entropy"), "O(n²)")
    | dict.fromkeys(("fsum", "fsum_inverse"), "O(n m)")
)


class FSumMethod(Method):
    """The orderings of one density, all from FSum(t), the number of scores softly below t.

        rank_i = 1/2 + FSum(x_i)      sort_j = FSum⁻¹(j - 1/2)      quantile_q = FSum⁻¹(q n)
        P_ji   = F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ)  with  FSum(t_j) = j

    Scores are sorted once. Sums over sorted scores take O(n), for densities of the user's O(n²)
    time and O(n) memory, and derivatives are made of the same sums.

    Args:
        density: F, see `so.densities`.

    >>> import torch, softorder as so
    >>> method = so.relaxations.FSumMethod(so.densities.Laplace())
    >>> so.soft_rank(torch.tensor([2.0, 1.0, 0.0]), method=method)
    tensor([2.7484, 2.0000, 1.2516])
    """

    operators = tuple(_FAST)

    def __init__(self, density: Density) -> None:
        self.density = density
        self.name = density.name
        self.smoothness = density.smoothness
        self.good_for = density.good_for
        self.paper = density.paper
        self.cost = _FAST if density in NUMBERED else _TILED
        orders = ("soft_rank", "soft_sort") if density is BUILT_IN["laplace"] else ()
        self.sharded = ("soft_quantile", *orders)
        self.number = number_of(density) if density in NUMBERED else -1
        self.walked = is_walked(self.number)

    def soft_rank(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        plain = partial(self._rank, descending=descending)
        return self._walked(order.rank, scores, temperature, descending, plain)

    def soft_sort(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        plain = partial(self._sort, descending=descending)
        return self._walked(order.sort, scores, temperature, descending, plain)

    def soft_permutation(
        self, scores: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        plain = partial(self._permutation, descending=descending, k=k)
        if self.density not in NUMBERED:
            return plain(scores, temperature)
        options = self.number, k
        return fused.run(permutation.permutation, scores, temperature, descending, plain, *options)

    def permuted(
        self, scores: Tensor, values: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        settings = temperature, descending, k, self.density
        return companions.by_sums(scores, values, *settings).to(values.dtype)

    def soft_sort_within(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        """P x, with what takes no part at the infinity behind all others."""
        n, own = scores.shape[-1], scores.unsqueeze(-2)
        t = self.permuted(scores, own, temperature, descending, n).squeeze(-2)
        behind = -math.inf if descending else math.inf
        return _check.dense_gradient(torch.where(t == -math.inf, behind, t))

    def soft_quantile(self, scores: Tensor, q: Tensor, temperature: Tensor) -> Tensor:
        if few(q):
            present = (scores > -math.inf).sum(-1, keepdim=True)
            return points(scores, q * present, temperature, self.density)
        scores = scores.double()
        rows = sort_rows(scores)
        return self._inverse(scores, rows, q * rows.available, temperature)

    def fsum(self, scores: Tensor, points: Tensor, temperature: Tensor) -> Tensor:
        """FSum(t); what is +inf counts half at t = +inf, as a score does at its own place."""
        rows = sort_rows(scores)
        finite = points.isfinite()
        t = torch.where(finite, points, 0.0)
        order = sort(t).order
        t, order = (v.expand(*scores.shape[:-1], -1) for v in (t.gather(-1, order), order))
        x = rows.in_order(scores)
        below = fsum(x, t, None, temperature, self.density, counts=(rows.count, None))
        below = torch.empty_like(below).scatter(-1, order, below)
        ends = torch.where(points > 0, rows.middle_of_certain, torch.zeros_like(t))
        ends = torch.where(points.isnan(), math.nan, ends)
        return rows.spoil(torch.where(finite, below, ends))

    def means_between(self, scores: Tensor, places: Tensor, temperature: Tensor) -> Tensor:
        """The means of the scores by their mass between FSum = place and place + 1."""
        found = companions.between(scores, places, temperature, self.density)
        return found.to(scores.dtype)

    def weighted_quantile(
        self, scores: Tensor, q: Tensor, temperature: Tensor, weights: Tensor
    ) -> Tensor:
        """t with Σ_i w_i F((t - x_i)/τ) = q Σ_i w_i."""
        total = torch.where(scores > -math.inf, weights.double(), 0.0).sum(-1, keepdim=True)
        return points(scores, q * total, temperature, self.density, weights)

    def ranks_of_many(self, scores: Tensor, weights: Tensor, temperature: Tensor) -> Tensor:
        """1/2 + Σ_j w_j F((x_j - x_i)/τ): places from the top, where score j is there w_j times.

        Anything for what takes no part.
        """
        rows = sort_rows(scores)
        x, w = map(rows.in_order, (scores, weights))
        below = fsum(x, x, w, temperature, self.density, counts=(rows.count, rows.count))
        certain = torch.where(scores == math.inf, weights, 0.0).sum(-1, keepdim=True)
        finite = torch.where(scores.isfinite(), weights, 0.0).sum(-1, keepdim=True)
        above = certain + finite - rows.to_origin(below)
        return rows.spoil(0.5 + torch.where(scores.isfinite(), above, certain / 2))

    def fsum_inverse(self, scores: Tensor, levels: Tensor, temperature: Tensor) -> Tensor:
        if few(levels):
            return points(scores, levels.double(), temperature, self.density)
        scores = scores.double()
        return self._inverse(scores, sort_rows(scores), levels, temperature)

    def permutation_cross_entropy(
        self,
        scores: Tensor,
        target: Tensor,
        temperature: Tensor,
        descending: bool,
        last: Tensor | None = None,
    ) -> Tensor:
        """-log Σ_j P[j, i] over j from target_i to last_i, in float64.

        0 for absent elements, and where the target is negative.
        """
        places = target, target if last is None else last
        plain = partial(self._losses, places=places, descending=descending)
        if self.density not in NUMBERED:
            return plain(scores, temperature)
        wide = tuple(place.long() for place in places)
        settings = scores, temperature, descending, plain, self.number
        return fused.run(placement.placement, *settings, tensors=wide)

    def _walked(
        self,
        kernel: Fused,
        scores: Tensor,
        temperature: Tensor,
        descending: bool,
        plain: fused.Plain,
    ) -> Tensor:
        """By a kernel that knows the densities whose sums take one walk along sorted scores."""
        if not self.walked:
            return plain(scores, temperature)
        return fused.run(kernel, scores, temperature, descending, plain, self.number)

    def segments_rank(
        self, scores: Tensor, temperature: Tensor, descending: bool, offsets: Tensor
    ) -> Tensor:
        """Ranks in rows of different lengths, one behind another."""
        return self._rank_in(sort_segments(scores, offsets), scores, temperature, descending)

    def segments_sort(
        self, scores: Tensor, temperature: Tensor, descending: bool, offsets: Tensor
    ) -> Tensor:
        """Such rows, sorted."""
        return self._sort_in(sort_segments(scores, offsets), scores, temperature, descending)

    def segments_losses(
        self,
        scores: Tensor,
        temperature: Tensor,
        descending: bool,
        offsets: Tensor,
        places: tuple[Tensor, Tensor],
    ) -> Tensor:
        """-log of what the scores of such rows have of their places."""
        x = scores.double()
        rows = sort_segments(x, offsets)
        return self._losses_in(rows, x, temperature, places, descending)

    def segments_fsum(
        self, scores: Tensor, temperature: Tensor, offsets: Tensor, points: Tensor
    ) -> Tensor:
        """FSum(t) of such rows at the points (rows, m)."""
        rows, finite = sort_segments(scores, offsets), points.isfinite()
        t, order = torch.where(finite, points, 0.0).sort()
        x, at = rows.in_order(scores), rows.aimed_at_each(t.shape[-1]).offsets
        settings = None, temperature, self.density
        below = fsum(x, t.flatten(), *settings, counts=(rows.count, None), offsets=at)
        below = torch.empty_like(t).scatter(-1, order, below.view_as(t))
        add_up = rows.segments.add_up
        whole = (add_up(scores > -math.inf) - 0.5 * add_up(scores == math.inf)).unsqueeze(-1)
        ends = torch.where(points > 0, whole.to(t.dtype), 0.0)
        ends = torch.where(points.isnan(), math.nan, ends)
        return rows.spoil_rows(torch.where(finite, below, ends))

    def segments_inverse(
        self, scores: Tensor, temperature: Tensor, offsets: Tensor, levels: Tensor
    ) -> Tensor:
        """Where FSum of such rows has the levels (rows, m), in float64."""
        scores = scores.double()
        levels, order = levels.sort()
        rows = sort_segments(scores, offsets).aimed_at_each(levels.shape[-1])
        flat = levels.flatten()
        centre, rest = self._roots_across_gaps(scores, rows, flat, temperature)
        t = centre + rest
        t = torch.empty_like(levels).scatter(-1, order, t.view_as(levels))
        some = rows.segments.add_up(scores > -math.inf).unsqueeze(-1) > 0
        return rows.spoil_rows(torch.where(some, t, math.nan))

    def _rank(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        return self._rank_in(sort_rows(scores), scores, temperature, descending)

    def _sort(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        return self._sort_in(sort_rows(scores), scores, temperature, descending)

    def _rank_in(
        self, rows: SortedRows, scores: Tensor, temperature: Tensor, descending: bool
    ) -> Tensor:
        rows, x, temperature = rows.in_range(scores, temperature, rows.factor())
        if self.density.decay == "exponential":
            # float64 all along: what a score does to itself is exactly 0, with any factor of 1/τ.
            # Of heavy tails the others are a part of the sum, and float32 is three times as fast.
            x = x.double()
        x, counts = rows.in_order(x), (rows.count, rows.count)
        below = fsum(x, x, None, temperature, self.density, counts=counts, offsets=rows.offsets)
        return all_ranks(rows, (below + 0.5).to(scores.dtype), descending)

    def _sort_in(
        self, rows: SortedRows, scores: Tensor, temperature: Tensor, descending: bool
    ) -> Tensor:
        factor, x = rows.factor(), scores
        if factor is not None:
            rows, x, temperature = self._in_range(rows, scores, temperature, factor)
        centre, rest = self._roots(x, rows, rows.places() + 0.5, temperature)
        t = rows.ascending(centre + rest)
        t = t if factor is None else with_gradient_of(t / factor, t)
        return all_values(rows, t, descending)

    def _in_range(
        self, rows: SortedRows, scores: Tensor, temperature: Tensor, factor: Tensor
    ) -> tuple[SortedRows, Tensor, Tensor]:
        """All of it multiplied by the factor, with the gradients of what was given."""
        rows, x, tau = rows.in_range(scores, temperature, factor)
        return rows, with_gradient_of(x, scores), with_gradient_of(tau, temperature)

    def _permutation(self, scores: Tensor, temperature: Tensor, descending: bool, k: int) -> Tensor:
        x = scores.double()
        rows = sort_rows(x)
        rows, x, temperature = rows.in_range(x, temperature, rows.factor())
        centre, rest = self._roots(x, rows, levels_of(rows, descending, k), temperature)
        p = between(x, rows, centre, rest, temperature, descending, self.density)
        return p.to(scores.dtype)

    def _losses(
        self,
        scores: Tensor,
        temperature: Tensor,
        places: tuple[Tensor, Tensor],
        descending: bool,
    ) -> Tensor:
        x = scores.double()
        return self._losses_in(sort_rows(x), x, temperature, places, descending)

    def _losses_in(
        self,
        rows: SortedRows,
        x: Tensor,
        temperature: Tensor,
        places: tuple[Tensor, Tensor],
        descending: bool,
    ) -> Tensor:
        factor = rows.factor()
        if factor is not None:
            rows, x, temperature = self._in_range(rows, x, temperature, factor)
        rows = rows.thresholds()
        levels = rows.levels().double()
        centre, rest = self._roots_across_gaps(x, rows, levels, temperature)
        given = self.density, rows, x, (centre, rest), temperature, places, descending
        losses = losses_between(*given)
        return losses if factor is None else damped(losses, factor)

    def _inverse(
        self, scores: Tensor, rows: SortedRows, levels: Tensor, temperature: Tensor
    ) -> Tensor:
        """In float64, where the slope of FSum underflows only across very wide gaps."""
        levels, order = torch.sort(levels.expand(*scores.shape[:-1], levels.shape[-1]))
        centre, rest = self._roots_across_gaps(scores, rows, levels, temperature)
        t = centre + rest
        if rows.present is not None:
            t = torch.where(rows.present > 0, t, math.nan)
        return rows.spoil(torch.empty_like(t).scatter(-1, order, t))

    def _roots(
        self, scores: Tensor, rows: SortedRows, levels: Tensor, temperature: Tensor
    ) -> tuple[Tensor, Tensor]:
        x, law = rows.in_order(scores), self.density
        return roots(x, levels.double(), temperature, law, rows.count, rows.offsets)

    def _is_dense(self, rows: SortedRows, temperature: Tensor) -> bool:
        """Whether it is seen that FSum has no plateau at a whole level.

        Its slope underflows only in a gap, in the middle of which f does.
        """
        if self.number < 0 or rows.values.shape[-1] < 2 or not at_hand(rows.values, temperature):
            return False
        widest = rows.values.diff().amax()  # to what takes no part it is infinitely wide
        middle = (widest / 2 / temperature.detach().min()).double()
        return self.density.pdf(middle).item() >= flat_below(self.density)

    def _roots_across_gaps(
        self, scores: Tensor, rows: SortedRows, levels: Tensor, temperature: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same with the derivatives of t on a plateau of FSum, where its slope underflows.

        There t lies midway between two neighbours, but for a multiple of τ (kernels/fsum/edges.py).
        """
        centre, rest = self._roots(scores, rows, levels, temperature)
        if self._is_dense(rows, temperature):
            return centre, rest
        x, t = rows.in_order(scores), (centre + rest).detach()
        places = levels.detach().round().long()
        column = rows.beside_targets(temperature).to(x.dtype)
        below, above = ((t - v) / column.detach() for v in rows.neighbours(x.detach(), places))
        slope = self.density.pdf(below) + self.density.pdf(above)
        flat = slope < flat_below(self.density)
        flat &= t.isfinite() & (levels < rows.available_at_targets())
        if at_hand(flat) and not flat.any():
            return centre, rest
        sides = rows.neighbours(self._behind_edges(x, rows, temperature.detach()), places)
        low, high = (torch.where(flat, v, 0.0) for v in sides)
        share = share_of_lower(self.density, below, -above)
        middle = share * low + (1 - share) * high
        most = torch.finfo(x.dtype).max
        beside = torch.where(flat, (t - middle.detach()) / column.detach(), 0.0).clamp(-most, most)
        moved = centre.detach() + _nought(middle) + beside * _nought(column)
        return torch.where(flat, moved, centre), rest

    def _behind_edges(self, x: Tensor, rows: SortedRows, temperature: Tensor) -> Tensor:
        """The mean of all scores that have a share in a plateau which begins at a score, or ends.

        Differentiable by the scores of which it is the mean, not by their shares.
        """
        law, tau = edge_law(self.density, temperature)
        at, counts = x.detach(), (rows.count, rows.count)
        within = torch.where(at.isfinite(), x, 0.0)
        offsets = None if rows.offsets is None else (rows.offsets[0],) * 2
        total, number = (
            fsum(at, at, weights, tau, law, derivative=1, counts=counts, offsets=offsets)
            for weights in (within, None)
        )
        return total / torch.where(number > 0, number, 1.0)


def _nought(value: Tensor) -> Tensor:
    """0 with the derivatives of `value`."""
    return value - value.detach()


for _density in BUILT_IN.values():
    register(FSumMethod(_density))
