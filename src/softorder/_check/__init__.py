"""The only argument validation. Everything below works on arguments that passed here.

Messages name the argument, what was given, and what is allowed. Numbers and shapes are always
checked. The entries of tensors are checked too, except where they cannot be seen: under
torch.compile, torch.export, torch.func and fake tensors.
"""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active, _len_torch_dispatch_stack
from torch.autograd import forward_ad
from torch.compiler import is_compiling

PerRow = float | Tensor  #: a number, or a tensor that broadcasts over the rows

_FLOATING = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_NOT_COUNTS = (torch.bool, torch.complex32, torch.complex64, torch.complex128)


def eager() -> bool:
    """Whether calls run at once on plain tensors: no tracing, torch.func, forward mode or modes."""
    return not (
        is_compiling()
        or _are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or _len_torch_dispatch_stack()
    )


def plain(*values: Tensor) -> bool:
    """Whether these are CPU tensors whose memory is what they say: no subclasses, no batches."""
    for value in values:
        if type(value) not in _PLAIN or not value.is_cpu or value.is_neg() or _is_batch(value):
            return False
    return True


def finite(scores: Tensor) -> bool:
    """Whether every score is finite. A sum tells it sooner, unless it overflows."""
    scores = scores.detach()
    return math.isfinite(scores.sum().item()) or bool(scores.isfinite().all())


_PLAIN = (Tensor, torch.nn.Parameter)
_is_batch = torch._C._functorch.is_legacy_batchedtensor  # of autograd's is_grads_batched


def scores(scores: Tensor, dim: int) -> None:
    """`scores` is a floating-point tensor with at least one axis, and `dim` is one of them."""
    floating("scores", scores)
    axes = scores.dim()
    if type(dim) is not int:
        raise TypeError(f"dim must be an int, but got {type(dim).__name__}")
    if not -axes <= dim < axes:
        shape = tuple(scores.shape)
        raise ValueError(
            f"dim must be between {-axes} and {axes - 1} for scores of shape {shape}, but got {dim}"
        )


def mask(mask: Tensor | None, scores: Tensor) -> None:
    """`mask` is None, or a boolean tensor that broadcasts to `scores`."""
    if mask is None:
        return
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a tensor of dtype bool, but got {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be a tensor of dtype bool, but got {_name(mask.dtype)}")
    if not _broadcasts(mask.shape, scores.shape):
        raise ValueError(
            f"mask must broadcast to the shape of scores, {tuple(scores.shape)}, "
            f"but got shape {tuple(mask.shape)}"
        )


def k(k: PerRow, scores: Tensor, dim: int) -> None:
    """`k` is a number in [0, n], or a tensor of such numbers that broadcasts over the rows."""
    n = scores.shape[dim]
    if not isinstance(k, Tensor):
        if _is_number("k", k) and not 0 <= k <= n:
            raise ValueError(_k_range(n, dim, k))
        return
    _check_rows("k", k, scores, dim)
    if not eager() or k.numel() == 0:
        return
    low, high = _extremes(k)
    if not (low >= 0 and high <= n):
        raise ValueError(_k_range(n, dim, _first(k, ~((k >= 0) & (k <= n)))))


def k_alone(k: PerRow) -> None:
    """`k` as far as it can be judged before any scores are seen."""
    if _is_number("k", k) and not 0 <= k < math.inf:
        raise ValueError(f"k must be between 0 and the number of scores, but got {k}")


def whole_k(k: int | None, n: int | None = None) -> None:
    """`k` is None, or a number of rows: an int in [0, n]. Without n, as far as it can be judged."""
    if k is None:
        return
    if not isinstance(k, (int, torch.SymInt)) or type(k) is bool:
        raise TypeError(f"k must be an int or None, but got {type(k).__name__}")
    if k < 0 or (n is not None and k > n):
        most = "the number of scores" if n is None else f"{n}, the number of scores"
        raise ValueError(f"k must be between 0 and {most}, but got {k}")


def q(q: PerRow, scores: Tensor, dim: int) -> None:
    """`q` is a number in [0, 1], or a tensor of them: quantiles first, then the rows."""
    if not isinstance(q, Tensor):
        return q_alone(q)
    if q.dtype in _NOT_COUNTS:
        raise TypeError(f"q must hold real numbers, but got a tensor of {_name(q.dtype)}")
    shape = list(scores.shape)
    del shape[dim]
    if q.dim() > 1 and not _broadcasts(q.shape[1:], shape):
        raise ValueError(
            f"q must be a scalar, or have its quantiles on the first axis and the others broadcast "
            f"over the rows of scores, shape {tuple(shape)}, but got shape {tuple(q.shape)}"
        )
    if eager() and q.numel():
        low, high = _extremes(q)
        if not (low >= 0 and high <= 1):
            q_alone(_first(q, ~((q >= 0) & (q <= 1))))


def q_alone(q: PerRow) -> None:
    """`q` as far as it can be judged before any scores are seen."""
    if _is_number("q", q) and not 0 <= q <= 1:
        raise ValueError(f"q must be between 0 and 1, but got {q}")


def target(target: Tensor, scores: Tensor, dim: int, ignore_index: int) -> None:
    """`target` holds places in [0, n), or ignore_index, and is shaped as scores."""
    integers("target", target)
    if target.shape != scores.shape:
        raise ValueError(
            f"target must have the shape of scores, {tuple(scores.shape)}, "
            f"but got shape {tuple(target.shape)}"
        )
    n = scores.shape[dim]
    if eager() and target.numel():
        wrong = ((target < 0) | (target >= n)) & (target != ignore_index)
        if wrong.any():
            raise ValueError(
                f"target must be between 0 and {n - 1}, the last place along dim {dim}, or "
                f"ignore_index = {ignore_index}, but got {int(_first(target, wrong))}"
            )


def integers(name: str, value: Tensor) -> None:
    """A tensor of integers."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor of integers, but got {type(value).__name__}")
    if value.dtype.is_floating_point or value.dtype in _NOT_COUNTS:
        raise TypeError(f"{name} must hold integers, but got a tensor of {_name(value.dtype)}")


def reduction(reduction: str) -> None:
    """`reduction` is one of torch's."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', but got {reduction!r}")


def one_of(**given: object) -> None:
    """Exactly one of two arguments is given."""
    if sum(value is not None for value in given.values()) != 1:
        names = " and ".join(given)
        found = ", ".join(name for name, value in given.items() if value is not None) or "none"
        raise ValueError(f"exactly one of {names} must be given, but got {found}")


def floating(name: str, value: Tensor) -> None:
    """A tensor of floating dtype with at least one axis."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, but got {type(value).__name__}")
    if value.dtype not in _FLOATING:
        allowed = ", ".join(map(_name, _FLOATING))
        raise TypeError(
            f"{name} must have one of the dtypes {allowed}, but got {_name(value.dtype)}"
        )
    if value.dim() == 0:
        raise ValueError(f"{name} must have at least one axis, but got a tensor of shape ()")


def probs(probs: Tensor, total: PerRow | None = None) -> None:
    """`probs` holds probabilities, which sum to `total` over the last axis if that is given."""
    floating("probs", probs)
    if not eager() or probs.numel() == 0:
        return
    low, high = _extremes(probs)
    if not (low >= 0 and high <= 1):
        outside = _first(probs, ~((probs >= 0) & (probs <= 1)))
        raise ValueError(f"probs must be between 0 and 1, but got {outside}")
    if total is None:
        return
    sums = probs.detach().sum(-1, dtype=torch.float64)
    off = sums - total
    wrong = off.abs() > 4 * torch.finfo(probs.dtype).eps * probs.shape[-1]
    if bool(wrong.any()):
        given = _first(torch.broadcast_to(sums, off.shape), wrong)
        raise ValueError(f"probs must sum to k over the last axis, but a row sums to {given}")


def whole(name: str, value: Tensor, why: str) -> None:
    """Every entry is a whole number."""
    broken = value != value.round()
    if eager() and bool(broken.any()):
        raise ValueError(f"{name} must be whole {why}, but got {_first(value, broken)}")


def needs_loss(estimator: str, loss: object) -> None:
    """A loss is there, and can be called."""
    if not callable(loss):
        raise TypeError(f"{estimator} needs a loss to call, but got {type(loss).__name__}")


def losses(losses: Tensor, shape: Iterable[int]) -> None:
    """A loss function gave one number for each draw and each row."""
    if tuple(losses.shape) != tuple(shape):
        raise ValueError(
            f"loss must return one number for each draw and row, of shape {tuple(shape)}, "
            f"but returned shape {tuple(losses.shape)}"
        )


def count(name: str, value: int, least: int, most: int | None = None) -> None:
    """A whole number in [least, most]."""
    if not isinstance(value, numbers.Integral) or type(value) is bool:
        raise TypeError(f"{name} must be an int, but got {type(value).__name__}")
    if value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name} must be {allowed}, but got {value}")


def choice(name: str, value: str, allowed: Iterable[str]) -> None:
    """One of a few words."""
    words = tuple(allowed)
    if value not in words:
        near = difflib.get_close_matches(str(value), words, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(words)}, but got {value!r}{hint}")


def subclass(name: str, value: object, base: type) -> None:
    """A class of a kind, where a name would do as well."""
    if not (isinstance(value, type) and issubclass(value, base)):
        raise TypeError(
            f"{name} must be a name or a subclass of {base.__name__}, "
            f"but got {value!r} of type {type(value).__name__}"
        )


def flag(name: str, value: bool) -> None:
    """An option that is either True or False."""
    if type(value) is not bool:
        raise TypeError(f"{name} must be True or False, but got {type(value).__name__}")


def temperature(temperature: PerRow, scores: Tensor, dim: int) -> None:
    """`temperature` is a finite number > 0, or a tensor of them that broadcasts over the rows."""
    if not isinstance(temperature, Tensor):
        return temperature_alone(temperature)
    _check_rows("temperature", temperature, scores, dim)
    if not eager() or temperature.numel() == 0:
        return
    low, high = _extremes(temperature)
    if not (low > 0 and high < math.inf):
        wrong = ~((temperature > 0) & temperature.isfinite())
        raise ValueError(_temperature_range(_first(temperature, wrong)))


def temperature_alone(temperature: PerRow) -> None:
    """`temperature` as far as it can be judged before any scores are seen."""
    if isinstance(temperature, Tensor):
        return
    if _is_number("temperature", temperature) and not 0 < temperature < math.inf:
        raise ValueError(_temperature_range(temperature))


def unknown_method(given: str, known: Iterable[str], aliases: Mapping[str, str]) -> ValueError:
    """The error for a `method` that nobody registered: lists the known, suggests the nearest."""
    names = sorted(known)
    name = given.strip().lower()
    near = difflib.get_close_matches(name, [*names, *aliases], n=1, cutoff=0.5)
    meant = aliases.get(near[0], near[0]) if near else None
    hint = f"; did you mean {meant!r}?" if meant in names else ""
    return ValueError(f"method must be one of {', '.join(names)}, but got {given!r}{hint}")


def serves(name: str, operator: str, operators: Iterable[str]) -> None:
    """A method that was given as an object has the operator."""
    if operator not in operators:
        raise ValueError(
            f"method must serve {operator}, but got {name!r}, which serves {', '.join(operators)}"
        )


def law(method: object) -> None:
    """`method` is an object with the methods cdf and pdf."""
    missing = [name for name in ("cdf", "pdf") if not callable(getattr(method, name, None))]
    if missing:
        raise TypeError(
            "method must be the name of a method or an even density with the methods cdf and pdf, "
            f"but got {type(method).__name__}, which has no {' and no '.join(missing)}"
        )


def tolerance(tolerance: float) -> None:
    """`tolerance` is a finite number > 0."""
    if _is_number("tolerance", tolerance) and not 0 < tolerance < math.inf:
        raise ValueError(f"tolerance must be finite and > 0, but got {tolerance}")


def max_iterations(max_iterations: int | None) -> None:
    """`max_iterations` is None, or an int >= 1."""
    if max_iterations is not None:
        count("max_iterations", max_iterations, least=1)


def transport_cost(cost: object) -> None:
    """`cost` is "squared" or a function of scores and anchors."""
    if cost != "squared" and not callable(cost):
        raise TypeError(f"cost must be 'squared' or a callable, but got {cost!r}")


def anchors(anchors: Tensor | None, places: int | None = None) -> None:
    """`anchors` is None, or a 1-D tensor of ascending numbers, one for each place."""
    if anchors is None:
        return
    if not isinstance(anchors, Tensor):
        raise TypeError(f"anchors must be a tensor or None, but got {type(anchors).__name__}")
    if anchors.dim() != 1 or anchors.dtype not in _FLOATING:
        shape, dtype = tuple(anchors.shape), _name(anchors.dtype)
        raise ValueError(
            f"anchors must be a 1-D tensor of floating dtype, but got shape {shape} of {dtype}"
        )
    if eager() and not bool((anchors.detach().diff() > 0).all()):
        raise ValueError(f"anchors must ascend, but got {anchors.detach().tolist()}")
    if places is not None and len(anchors) != places:
        raise ValueError(
            f"anchors must be {places}, one for each place and for the rest, but got {len(anchors)}"
        )


def _is_number(name: str, value: object) -> bool:
    kind = type(value)
    if kind is float or kind is int:
        return True
    if isinstance(value, Tensor):
        return False
    if isinstance(value, (numbers.Real, torch.SymInt, torch.SymFloat)) and kind is not bool:
        return True
    raise TypeError(f"{name} must be a real number or a tensor, but got {kind.__name__}")


def _check_rows(name: str, value: Tensor, scores: Tensor, dim: int) -> None:
    if value.dtype in _NOT_COUNTS:
        raise TypeError(f"{name} must hold real numbers, but got a tensor of {_name(value.dtype)}")
    shape = list(scores.shape)
    del shape[dim]
    if not _broadcasts(value.shape, shape):
        raise ValueError(
            f"{name} must broadcast over the rows of scores, shape {tuple(shape)}, "
            f"but got shape {tuple(value.shape)}"
        )


def _broadcasts(shape: Iterable[int], target: Iterable[int]) -> bool:
    shape, target = tuple(shape), tuple(target)
    ends = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(a in (1, b) for a, b in ends)


def _extremes(value: Tensor) -> tuple[float, float]:
    """Smallest and largest entry; NaN if any is NaN."""
    value = value.detach()
    if value.numel() == 1:
        return (value.item(),) * 2
    low, high = torch.aminmax(value)
    return low.item(), high.item()


def _first(value: Tensor, where: Tensor) -> float:
    return value.detach()[where].flatten()[0].item()


def _k_range(n: int, dim: int, given: float) -> str:
    return f"k must be between 0 and {n}, the number of scores along dim {dim}, but got {given}"


def _temperature_range(given: float) -> str:
    return f"temperature must be finite and > 0, but got {given}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
