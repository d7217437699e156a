"""Rows of scores of every kind, and the odd places in memory where a tensor can lie."""

import math

import torch


def _finfo(dtype):
    return torch.finfo(dtype)


def _some(random, shape, share):
    return torch.rand(shape, generator=random) < share


def _with(special):
    """Normal scores, some of which are one of these."""

    def make(random, shape):
        choice = torch.tensor(special)[torch.randint(len(special), shape, generator=random)]
        return torch.where(_some(random, shape, 0.3), choice, _normal(random, shape))

    return make


def _normal(random, shape):
    return torch.randn(shape, generator=random, dtype=torch.float64)


def _geometric(random, shape):
    exponents = 600 * torch.rand(shape, generator=random, dtype=torch.float64) - 300
    return 10**exponents * torch.where(_some(random, shape, 0.5), 1.0, -1.0)


#: Where compiled kernels and plain torch have to agree.
ORDINARY = {
    "normal": _normal,
    "shifted": lambda random, shape: _normal(random, shape) + 1000,
    "ties": lambda random, shape: torch.randint(4, shape, generator=random).double() / 2,
    "sorted": lambda random, shape: _normal(random, shape).sort(-1).values,
}
#: Where they have to agree, too: near the ends of a format's range, and beside what is no number.
EXTREME = {
    "all_equal": lambda random, shape: torch.full(shape, 0.7, dtype=torch.float64),
    "descending": lambda random, shape: -_normal(random, shape).sort(-1).values,
    "zeros": lambda random, shape: torch.where(_some(random, shape, 0.5), 0.0, -0.0).double(),
    "infinities": _with([math.inf, -math.inf]),
    "nan": _with([math.nan, math.inf, -math.inf, 0.0]),
    "all_nan": lambda random, shape: torch.full(shape, math.nan, dtype=torch.float64),
    "all_minus_infinity": lambda random, shape: torch.full(shape, -math.inf, dtype=torch.float64),
    "denormal": lambda random, shape: _normal(random, shape) * 1e-310,
    "denormal_float32": lambda random, shape: _normal(random, shape) * 1e-41,
    "denormal_float16": lambda random, shape: _normal(random, shape) * 1e-7,
    "largest": lambda random, shape: _normal(random, shape).sign() * math.inf,
    "geometric": _geometric,
    "outlier": _with([1e30, -1e30]),
    "huge": lambda random, shape: _normal(random, shape) * 1e308,
    "shifted_by_a_million": lambda random, shape: _normal(random, shape) + 1e6,
    "shifted_far": lambda random, shape: _normal(random, shape) * 1e285 + 1e300,
    "clusters": lambda random, shape: (
        1e-6 * _normal(random, shape) + 100.0 * torch.randint(3, shape, generator=random)
    ),
    "tiny_beside_infinities": lambda random, shape: torch.where(
        _some(random, shape, 0.3), math.inf, 1e-40 * _normal(random, shape)
    ),
}

NOT_FINITE = ("infinities", "nan", "all_nan", "all_minus_infinity", "tiny_beside_infinities")


def scores(kind, random, shape, dtype):
    """Of one kind. What a format cannot hold is its largest number, but for true infinities."""
    made = (ORDINARY | EXTREME)[kind](random, shape)
    if kind not in NOT_FINITE:
        most = _finfo(dtype).max
        made = made.clamp(-most, most)
    return made.to(dtype)


# ---- layouts -------------------------------------------------------------------------------------
#
# Each makes a tensor of the same values whose memory is a part of something larger.


def _offset(values):
    base = values.new_full((values.numel() + 2,), 7)
    base[1:-1] = values.flatten()
    return base[1:-1].view(values.shape)


def _every_second(values):
    base = values.new_full((*values.shape[:-1], 2 * values.shape[-1] + 1), 7)
    base[..., 1::2] = values
    return base[..., 1::2]


def _transposed(values):
    return values.movedim(-1, 0).contiguous().movedim(0, -1)


def _between_columns(values):
    base = values.new_full((*values.shape[:-1], values.shape[-1] + 3), 7)
    base[..., 1:-2] = values
    return base[..., 1:-2]


def _repeated(values):
    first = (0,) * (values.dim() - 1)
    return values[first].expand(values.shape) if values.numel() else values


LAYOUTS = {
    "plain": lambda values: values,
    "offset": _offset,
    "every_second": _every_second,
    "transposed": _transposed,
    "between_columns": _between_columns,
    "repeated": _repeated,
}


def whole(view):
    """All of the memory that a tensor is a part of, as bits: those of NaN can be compared."""
    storage = view.detach().untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage)
