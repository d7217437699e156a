"""Every operator by one method of each family that serves it, as a call with a gradient."""

import torch

import softorder as so

_TEMPERATURE = 0.3
_FAMILIES = {
    "soft_topk": ("laplace", "uniform", "sinkhorn", "network", "softsort", "renormalized_sigmoid"),
    "log_soft_topk": ("logistic", "sinkhorn"),
    "soft_rank": ("laplace", "normal", "permutahedron", "neuralsort"),
    "soft_sort": ("laplace", "cauchy", "permutahedron_kl", "network"),
    "soft_permutation": ("laplace", "network", "softsort", "sinkhorn"),
    "soft_quantile": ("laplace", "uniform"),
}
NAMES = tuple(f"{operator}-{method}" for operator, of in _FAMILIES.items() for method in of)


def call(name, scores):
    """The result of one of them, and the gradient of its squares."""
    operator, method = name.split("-")
    options = {"method": method, "temperature": _TEMPERATURE}
    x = scores.detach().requires_grad_()
    result = _call(operator, x, options)
    (gradient,) = torch.autograd.grad(result.square().mean(), x)
    return result.detach(), gradient


def _call(operator, x, options):
    if operator in ("soft_topk", "log_soft_topk"):
        return getattr(so, operator)(x, 2, **options)
    if operator == "soft_permutation":
        return so.soft_permutation(x, k=2, descending=True, **options)
    if operator == "soft_quantile":
        return so.soft_quantile(x, 0.3, **options)
    return getattr(so, operator)(x, **options)


def scores(seed, rows, n):
    return torch.randn(rows, n, generator=torch.Generator().manual_seed(seed))
