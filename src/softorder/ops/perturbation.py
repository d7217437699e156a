"""perturb."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _check
from softorder._noise import NOISES


def perturb(
    scores: Tensor,
    sample_shape: Sequence[int] = (),
    *,
    noise: str = "gumbel",
    scale: float | Tensor = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Scores plus independent noise, as many times as wanted: what makes any operator stochastic.

    An operator of the result is a relaxed draw of its hard limit, and its gradient passes through
    the noise. The order of x + Gumbel noise is one of Plackett and Luce's law, in which the first
    place goes to i with probability softmax(x)_i, the next one likewise among the rest. So
    stochastic NeuralSort (Grover et al. 2019) is

        so.soft_permutation(so.perturb(scores, (5,)), method="neuralsort", temperature=τ)

    and `so.soft_topk` of it is a relaxed draw of k things without replacement.

    Args:
        scores: of any shape and floating dtype; ±inf stay what they are.
        sample_shape: how many draws; these axes come first.
        noise: "gumbel" or "normal", of scale 1.
        scale: its factor: a number, or a tensor that broadcasts to scores. May require grad.
        generator: of random numbers.

    Returns:
        scores + scale · noise, of shape (*sample_shape, *scores.shape) and the dtype of scores.

    >>> import torch, softorder as so
    >>> keys = so.perturb(torch.tensor([2.0, 1.0, 0.0]), (1000,))
    >>> first = so.hard.permutation(keys, k=1, descending=True).mean(0)
    >>> torch.allclose(first, torch.tensor([[0.665, 0.245, 0.090]]), atol=0.06)
    True
    """
    _check.floating("scores", scores)
    _check.choice("noise", noise, NOISES)
    _check.scale(scale, scores)
    _check.shape("sample_shape", sample_shape)
    many = scores.expand(*sample_shape, *scores.shape)
    wide = torch.promote_types(scores.dtype, torch.float32)
    drawn = NOISES[noise].draw(torch.empty(many.shape, dtype=wide, device=many.device), generator)
    return (many + scale * drawn).to(scores.dtype)
