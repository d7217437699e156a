"""sinkhorn and gumbel_sinkhorn, of matrices of scores."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.ops.perturbation import perturb
from softorder.relaxations.balanced import balanced


def sinkhorn(
    scores: Tensor,
    *,
    temperature: float | Tensor = 1.0,
    tolerance: float = 1e-12,
    max_iterations: int = 1000,
) -> Tensor:
    """The doubly stochastic matrix nearest to a matrix of scores: a soft assignment, all by all.

    Solves max_P <scores, P> - τ Σ P log P over {P ≥ 0, P 1 = 1, Pᵀ 1 = 1}. The maximiser is
    P_ij = exp(scores_ij/τ - u_i - v_j) with the u and v that make rows and columns sum to 1: the
    limit of Sinkhorn's iteration, which divides rows and columns by their sums in turn. As τ → 0
    it becomes the best assignment. Found by Newton's method in the log domain, to the tolerance and
    not by a fixed number of iterations; differentiated implicitly (`relaxations/balanced.py`).

    This is for networks that give n scores to each of n things, one for every place: the
    "Sinkhorn" of the papers on sorting. Where a thing has one score, `so.soft_permutation` is for
    it, and `so.Sinkhorn` is its method by entropic transport.

    Args:
        scores: (..., n, n), float64 to bfloat16. A matrix with an entry that is not finite is NaN;
            what must not be assigned gets a large negative number.
        temperature: τ > 0, a number or a tensor that broadcasts over the matrices, of shape (...).
            May require grad.
        tolerance: by how much a column may miss 1, if the rounding of scores/τ allows it. Rows sum
            to 1 exactly.
        max_iterations: where to give up, with a warning.

    Returns:
        P, with the shape and the dtype of scores; derivatives of both orders. Time O(n³) for each
        of some ten iterations, and for the gradient.

    Papers: Adams & Zemel 2011; Gumbel-Sinkhorn (Mena et al. 2018).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([[2.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> so.sinkhorn(scores, temperature=0.5).numpy().round(3)
    array([[0.306, 0.638, 0.056],
           [0.683, 0.192, 0.125],
           [0.011, 0.17 , 0.819]], dtype=float32)
    """
    _check_arguments(scores, temperature, tolerance, max_iterations)
    if scores.numel() == 0:
        return scores.clone()
    tau = _axis.per_row(temperature, scores)
    plan, solution = balanced(scores.to(tau.dtype), tau, tolerance, max_iterations)
    if _check.at_hand(solution.converged) and not solution.converged.all():
        warnings.warn(
            f"sinkhorn stopped after {max_iterations} iterations with columns that miss 1 by up to "
            f"{solution.error.max().item():.1e}: more of them help, or a higher temperature",
            stacklevel=2,
        )
    return plan.to(scores.dtype)


def gumbel_sinkhorn(
    scores: Tensor,
    sample_shape: Sequence[int] = (),
    *,
    temperature: float | Tensor = 1.0,
    noise: float = 1.0,
    generator: torch.Generator | None = None,
    tolerance: float = 1e-12,
    max_iterations: int = 1000,
) -> Tensor:
    """`sinkhorn` of scores with Gumbel noise: relaxed draws of permutations, with gradients.

    P = sinkhorn((scores + noise · G)/τ) with independent Gumbel numbers G. As τ → 0 a draw becomes
    the best assignment of perturbed scores; the gradient passes through the noise.

    Args:
        scores: as in `sinkhorn`.
        sample_shape: how many draws; these axes come first.
        temperature: as in `sinkhorn`.
        noise: the factor of the noise, >= 0.
        generator: of random numbers.
        tolerance: as in `sinkhorn`.
        max_iterations: as in `sinkhorn`.

    Returns:
        Matrices of shape (*sample_shape, *scores.shape).

    Paper: Gumbel-Sinkhorn (Mena et al. 2018).

    >>> import torch, softorder as so
    >>> P = so.gumbel_sinkhorn(torch.zeros(4, 4), (10,), temperature=0.1)
    >>> P.shape, torch.allclose(P.sum(-2), torch.ones(10, 4))
    (torch.Size([10, 4, 4]), True)
    """
    _check_arguments(scores, temperature, tolerance, max_iterations)
    _check.at_least("noise", noise, 0)
    wide = _axis.rows(scores, -1, largest=True, mask=None)
    many = perturb(wide, sample_shape, scale=noise, generator=generator)
    plan = sinkhorn(
        many, temperature=temperature, tolerance=tolerance, max_iterations=max_iterations
    )
    return plan.to(scores.dtype)


def _check_arguments(
    scores: Tensor, temperature: float | Tensor, tolerance: float, max_iterations: int
) -> None:
    _check.square("scores", scores)
    _check.temperature(temperature, scores.flatten(-2), -1)
    _check.tolerance(tolerance)
    _check.count("max_iterations", max_iterations, least=1)
