"""The distribution of k-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from math import comb
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl
from torch.distributions.utils import lazy_property

from softorder import _axis, _check
from softorder._noise import gumbel
from softorder.densities import Density
from softorder.distributions._parameters import Parameters, Relaxation, density_of, fixed
from softorder.distributions.constraints import KHotVector
from softorder.ops import soft_topk
from softorder.sampling import Design, find
from softorder.sampling._units import largest

_MOST_SUBSETS = 1 << 20
_Generator = torch.Generator | None


class KHot(Distribution):
    """Vectors x in {0,1}^n with k ones: what the categorical law is to one choice, for k of them.

    `probs` are inclusion probabilities that sum to k. `logits` θ give them as
    π = `so.soft_topk(θ, k, method=method)`, for every design that takes probabilities; without a
    k, π = F(θ), and k is Σ π. Designs with logits of their own, "conditional_poisson" and
    "gumbel_topk", take θ as these, P(x) ∝ e^<θ,x> for the former, unless `method` is given or k
    is not whole or is learned. A k that is not whole is met on average, by a phantom unit: x has
    ⌊k⌋ or ⌈k⌉ ones.

    The law that is sampled is the law that everything else speaks of: `mean` is that of the draws,
    also where it is not `probs` ("pareto"). What a design cannot tell raises NotImplementedError
    and names designs that can; `so.sampling.designs()` has the table.

    Args:
        k: number of ones: a number in [0, n], or a tensor of them that broadcasts over the rows.
            None for the sum of the probabilities. May require grad.
        probs: inclusion probabilities (..., n); one of probs and logits is given.
        logits: real numbers (..., n); -inf never takes part, +inf always.
        design: a name of `so.sampling.designs()`, or a Design of your own.
        method: how logits and probabilities belong together, the name of a density or one of your
            own; None is "logistic".
        validate_args: as in torch.distributions.

    >>> import torch, softorder as so
    >>> law = so.distributions.KHot(2, logits=torch.tensor([2.0, 1.0, 0.0, -1.0]))
    >>> law.mean
    tensor([0.8808, 0.6944, 0.3056, 0.1192])
    >>> law.log_prob(torch.tensor([1.0, 1.0, 0.0, 0.0])).exp()
    tensor(0.5859)
    >>> law.sample((3,)).sum(-1)
    tensor([2., 2., 2.])
    """

    arg_constraints = {  # noqa: RUF012 (as torch.distributions has it)
        "probs": constraints.independent(constraints.unit_interval, 1),
        "logits": constraints.real_vector,
    }
    has_rsample = True
    has_enumerate_support = True

    def __init__(
        self,
        k: float | Tensor | None = None,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        *,
        design: str | type[Design] = "conditional_poisson",
        method: str | Density | object | None = None,
        validate_args: bool | None = None,
    ) -> None:
        _check.one_of(probs=probs, logits=logits)
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        assert given is not None
        _check.floating(name, given)
        if k is not None:
            _check.k(k, given, -1)
        self._whole = fixed(k)
        k = None if k is None else _axis.per_row(k, given)
        if probs is not None:
            _check.probs(probs, k)
        self.design, self.method, self._given_as = find(design), method, name
        self._set(given, k, given.shape[:-1])
        super().__init__(self._given.shape[:-1], given.shape[-1:], validate_args=validate_args)

    def _set(self, given: Tensor, k: Tensor | None, rows: Sequence[int]) -> None:
        self._given = given.expand(*rows, given.shape[-1])
        self.k = k
        setattr(self, self._given_as, self._given)
        self.relaxation = Relaxation(density_of(self.method), k)
        self._parameters = Parameters(
            _axis.rows(self._given, -1, largest=True, mask=None),
            self._given_as == "logits",
            self.design,
            self.relaxation,
            whole=self._whole,
            natural=self.method is None,
        )

    # ---- parameters -----------------------------------------------------------------------------

    @lazy_property
    def logits(self) -> Tensor:
        """θ as given, or F⁻¹(probs)."""
        return self._like(self.relaxation.logits(self._parameters.rows))

    @lazy_property
    def probs(self) -> Tensor:
        """The inclusion probabilities that the design is asked for; `mean` is what it keeps."""
        if self._parameters.own and self.design.exact:
            return self.mean
        return self._like(self._parameters.probs)

    @property
    def law(self) -> Design:
        """The design, made of the rows, with a phantom unit at their end if `phantom` says so."""
        return self._parameters.law

    @property
    def phantom(self) -> bool:
        """Whether a phantom unit makes up for a k that is not whole."""
        return self.law is not None and self._parameters.phantom

    # ---- what torch.distributions asks for ------------------------------------------------------

    @property
    def support(self) -> KHotVector:
        if not self.design.fixed_size:
            return KHotVector(0, self.event_shape[0])
        size = self.law.size
        return KHotVector(size - 1 if self.phantom else size, size)

    @property
    def mean(self) -> Tensor:
        return self._like(self.law.inclusion())

    @property
    def variance(self) -> Tensor:
        mean = self.mean
        return mean * (1 - mean)

    @property
    def covariance_matrix(self) -> Tensor:
        """P(x_i = x_j = 1) - P(x_i = 1) P(x_j = 1)."""
        mean = self.mean
        return self.joint() - mean.unsqueeze(-1) * mean.unsqueeze(-2)

    def joint(self) -> Tensor:
        """P(x_i = x_j = 1), (..., n, n), with the mean on the diagonal."""
        return self._like(self.law.joint())[..., : self.event_shape[0], :]

    def entropy(self) -> Tensor:
        return self.law.entropy().to(self._given.dtype)

    def sample(self, sample_shape: Sequence[int] = (), generator: _Generator = None) -> Tensor:
        """Draws of shape (*sample_shape, *batch_shape, n), without a gradient."""
        _check.shape("sample_shape", sample_shape)
        with torch.no_grad():
            return self._like(self.law.sample(tuple(sample_shape), generator))

    def rsample(
        self,
        sample_shape: Sequence[int] = (),
        temperature: float | Tensor = 1.0,
        generator: _Generator = None,
    ) -> Tensor:
        """Relaxed draws in [0, 1]^n with gradients: `so.soft_topk((θ + noise)/temperature, k)`.

        The noise is Gumbel's for "gumbel_topk" (Algorithm 3 of the k-hot paper), and logistic, as
        in Pareto sampling, for the others. As the temperature goes to 0 they become draws of these.
        """
        return self.relaxed(self.perturbed(sample_shape, generator), temperature)

    def log_prob(self, value: Tensor) -> Tensor:
        _check.beside("value", value, self._given, self._given_as)
        if self._validate_args:
            self._validate_sample(value)
        value = value.to(self.law.rows.dtype)
        if not self.phantom:
            return self.law.log_prob(value).to(self._given.dtype)
        missing = self.law.size - value.sum(-1)
        result = self.law.log_prob(torch.cat([value, missing.unsqueeze(-1)], -1))
        possible = (missing == 0) | (missing == 1)
        return torch.where(possible, result, -torch.inf).to(self._given.dtype)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All vectors of the support, (number, *batch_shape, n); for small n, one k for all."""
        n, ends = self.event_shape[0], (self.support.least, self.support.most)
        sizes = [torch.as_tensor(end).unique().tolist() for end in ends]
        if any(len(found) != 1 for found in sizes):
            raise NotImplementedError("the support is only listed where all rows have the same k")
        possible = range(sizes[0][0], sizes[1][0] + 1)
        number = sum(comb(n, size) for size in possible)
        _check.count("the number of subsets to list", number, least=0, most=_MOST_SUBSETS)
        chosen = chain.from_iterable(combinations(range(n), size) for size in possible)
        values = torch.zeros(number, n, dtype=self._given.dtype)
        for row, units in enumerate(chosen):
            values[row, list(units)] = 1.0
        values = values.reshape(-1, *[1] * len(self.batch_shape), n).to(self._given.device)
        return values.expand(-1, *self.batch_shape, -1) if expand else values

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> KHot:
        _check.shape("batch_shape", batch_shape)
        new = self._get_checked_instance(KHot, _instance)
        new.design, new.method, new._given_as = self.design, self.method, self._given_as
        new._whole = self._whole
        new._set(self._given, self.k, batch_shape)
        Distribution.__init__(new, torch.Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    # ---- for estimators -------------------------------------------------------------------------

    def perturbed(self, sample_shape: Sequence[int] = (), generator: _Generator = None) -> Tensor:
        """θ + noise, whose largest would make a draw; a phantom unit is the last of them."""
        _check.shape("sample_shape", sample_shape)
        theta = self.logits
        if self.phantom:
            last = self.relaxation.logits(self.law.rows[..., -1:])
            theta = torch.cat([theta, last.to(theta.dtype)], -1)
        like = theta.detach().expand(*sample_shape, *theta.shape)
        noise = gumbel(like, generator)
        if self.design.name != "gumbel_topk":
            noise -= gumbel(like, generator)
        return theta + noise

    def relaxed(
        self, keys: Tensor, temperature: float | Tensor = 1.0, method: str | object | None = None
    ) -> Tensor:
        """The soft top-k of perturbed logits, by the density or by another method."""
        keys = self._like(keys)
        if method is not None:
            k = self.probs.sum(-1) if self.k is None else self.k
            return soft_topk(keys, k, method=method, temperature=temperature)
        _check.temperature(temperature, keys, -1)
        return self.relaxation.probs(keys / _axis.per_row(temperature, keys).to(keys).unsqueeze(-1))

    def hard(self, keys: Tensor) -> Tensor:
        """The top-k of perturbed logits."""
        return self._like(largest(keys.detach(), self.law.size.expand(keys.shape[:-1])))

    def _like(self, values: Tensor) -> Tensor:
        """Without the phantom unit, in the dtype that was given."""
        return values[..., : self.event_shape[0]].to(self._given.dtype)

    def __repr__(self) -> str:
        return f"KHot({self._given_as}: {tuple(self._given.shape)}, design={self.design.name!r})"


@register_kl(KHot, KHot)
def _kl_khot(p: KHot, q: KHot) -> Tensor:
    if p.phantom != q.phantom:
        raise NotImplementedError("KL of two laws of which only one has a phantom unit")
    return p.law.kl(q.law).to(p._given.dtype)
