from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder._noise import NOISES, sum_of_gamma
from softorder.distributions import KHot
from softorder.estimators._base import Loss, register, result, whole_size
from softorder.kernels._autograd import once
from softorder.sampling._units import largest


@register
def implicit_mle(
    law: KHot,
    loss: Loss | None = None,
    sample_shape: Sequence[int] = (),
    *,
    step: float = 1.0,
    temperature: float | Tensor = 1.0,
    noise: str = "sum_of_gamma",
    terms: int = 10,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draws by perturb-and-MAP, whose gradient is a difference of two of them: I-MLE.

    x = hard_topk(θ + τ ε). The parameters θ' = θ - λ ∂L/∂x make a law of smaller loss, the target,
    and the gradient is that of fitting it by maximum likelihood, with the same noise for both:

        dL/dθ := (x - x')/λ      x' = hard_topk(θ' + τ ε).

    The mean over the noise is (p(θ) - p(θ'))/λ with p = E[x]; as λ → 0 that is the
    straight-through gradient of p, of ever larger variance. Where λ moves no key past another, it
    is 0. ∂L/∂x is that of one draw and of the loss as it is reduced: a mean over many of them wants
    a larger λ. (The paper leaves the factor 1/λ to the learning rate.)

    The law's θ and k are used, and not its design: perturbation makes another law of the same
    parameters, with Gumbel noise that of "gumbel_topk". With the noise of the paper, what it adds
    to a subset, Σ x_i ε_i over k units, is a Gumbel number (two of them are not independent):

        ε = (1/k) (Σ_i Gamma(1/k, k/i) - log s)      i = 1, ..., s

    Args:
        law: its logits and k, which must be whole.
        loss: None for the draws, or a function of them.
        sample_shape: how many draws; these axes come first.
        step: λ > 0.
        temperature: τ > 0, the scale of the noise.
        noise: "sum_of_gamma", "gumbel" or "normal".
        terms: s, of the sum of Gamma numbers.
        generator: of random numbers.

    Paper: I-MLE (Niepert et al. 2021).

    >>> import torch, softorder as so
    >>> theta = torch.zeros(6, requires_grad=True)
    >>> x = so.estimators.implicit_mle(so.distributions.KHot(2, logits=theta), step=10.0)
    >>> (x * torch.tensor([5.0, 0.0, 5.0, 5.0, 5.0, 0.0])).sum().backward()  # 1 and 5 are cheap
    >>> bool((theta.grad[[1, 5]] <= 0).all()), theta.grad.sum()
    (True, tensor(0.))
    """
    _check.positive("step", step)
    _check.choice("noise", noise, ("sum_of_gamma", *NOISES))
    _check.count("terms", terms, least=1)
    _check.shape("sample_shape", sample_shape)
    theta = law.logits.to(torch.promote_types(law.logits.dtype, torch.float32))
    _check.temperature(temperature, theta, -1)
    size = whole_size(law, "implicit_mle").expand(theta.shape[:-1])
    many = theta.expand(*sample_shape, *theta.shape)
    if noise == "sum_of_gamma":
        drawn = sum_of_gamma(many.detach(), size.unsqueeze(-1), terms, generator)
    else:
        drawn = NOISES[noise].draw(many.detach(), generator)
    tau = torch.as_tensor(temperature, dtype=theta.dtype, device=theta.device).detach()
    x = _MAP.apply(many, tau.unsqueeze(-1) * drawn, size.expand(many.shape[:-1]), step)
    return result(x.to(law.logits.dtype), loss)


class _MAP(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, noise: Tensor, size: Tensor, step: float) -> Tensor:
        x = largest(theta + noise, size)
        ctx.save_for_backward(theta, noise, size, x)
        ctx.step = step
        return x

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        theta, noise, size, x = ctx.saved_tensors
        with torch.no_grad():
            target = largest(theta - ctx.step * upstream + noise, size)
            found = (x - target) / ctx.step
        why = "implicit_mle has no second derivatives"
        return *once(why, (found,), upstream, theta), None, None, None
