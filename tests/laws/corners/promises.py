"""Whether an answer keeps a promise of the contract; if not, why not."""

import math
from dataclasses import dataclass, replace

import torch

import softorder as so
from softorder.kernels.contract import CONTRACT, Gives
from tests.laws.corners.answers import ABSENT, P_K, answers, best, places, weighed
from tests.laws.corners.rows import rows
from tests.laws.orderings import operators as orderings

PARTS = ("value", "first", "second")
_EXACT = {torch.float64: 1e-9, torch.float32: 1e-4}
#: How near the limit is to where we look for it: the heaviest tails fall like 1/u.
_NEAR = {"plus_infinity": 1e-3, "gap": 2e-2}


@dataclass(frozen=True)
class Found:
    """What there is to judge: the row, what the operator gave, and for the row that it is like."""

    operator: str
    row: object
    answer: object
    twin: object
    dtype: torch.dtype

    @property
    def tolerance(self):
        return _NEAR.get(self.row.corner, _EXACT[self.dtype])

    @property
    def scores(self):
        return torch.tensor([self.row.scores], dtype=self.dtype)

    @property
    def present(self):
        """The value, but for losses of what takes no part, which has none."""
        loss = self.operator == "permutation_cross_entropy"
        return self.answer.value[self.scores[0] > -math.inf] if loss else self.answer.value


def broken(solve, operator, claims, dtype=torch.float64):
    """Every promise that is not kept: (corner, part) → the words that say how."""
    every = rows(dtype)
    found = answers(solve, operator, every, dtype)
    twins = _twins(solve, operator, every, dtype)
    failures = {}
    for row, answer, twin in zip(every, found, twins, strict=True):
        promise = promised(operator, row.corner, claims)
        for part in PARTS if promise else ():
            gives = getattr(promise, part)
            words = _CHECKS[part][gives](Found(operator, row, answer, twin, dtype))
            if words:
                failures.setdefault((row.corner, part), f"{row}: {gives.value}, but {words}")
    return failures


def _twins(solve, operator, every, dtype):
    """Those of a length together."""
    wanted = [row.twin() for row in every]
    found = {}
    for n in {len(twin.scores) for twin in wanted if twin}:
        group = [twin for twin in wanted if twin and len(twin.scores) == n]
        found |= zip(group, answers(solve, operator, group, dtype), strict=True)
    return [found.get(twin) for twin in wanted]


def promised(operator, corner, claims):
    """What the contract says, or what is left of it for a method with these claims."""
    corner = next(c for c in CONTRACT if c.name == corner)
    promise = corner.promises.get(operator)
    if promise is None:
        return None
    kinked = corner.smooth and "at ties" in claims.smoothness
    excused = kinked or set(corner.unless) & set(claims.breaks)
    return replace(promise, **_weaker(promise)) if excused else promise


def _weaker(promise):
    given = {part: getattr(promise, part) for part in PARTS}
    return {part: Gives.FINITE for part, gives in given.items() if gives is not Gives.NUMBER}


# ---- values --------------------------------------------------------------------------------------


def _equals(value):
    def check(found):
        right = found.present.isnan() if math.isnan(value) else found.present == value
        return "" if right.all() else f"it is {found.answer.value.tolist()}"

    return check


def _value_is(expected):
    """Near a tensor, which may have infinities; logarithms are compared as what they are of."""

    def check(found):
        value, wanted = found.answer.value, expected(found).to(found.dtype)
        if found.operator == "log_soft_topk":
            value, wanted = value.exp(), wanted.exp()
        if value.shape != wanted.shape:
            return f"its shape is {tuple(value.shape)}"
        ends = wanted.isinf() | (value.isinf() & (wanted.abs() > 1e4))
        sides = ends & (value.sign() == wanted.sign())
        size = wanted[~ends].abs().max().item() if (~ends).any() else 0.0
        apart = (value / (1 + size) - wanted / (1 + size)).abs()
        right = sides | (~ends & (apart <= found.tolerance))
        return "" if right.all() else f"it is {value.tolist()}, not {wanted.tolist()}"

    return check


def _hard(found):
    """The limit, by another way than the operators'."""
    scores, name = found.scores, found.operator
    k = torch.tensor([found.row.k], dtype=torch.float64)
    if name in ("soft_topk", "log_soft_topk"):
        p = so.hard.topk(scores, k)[0]
        return p.log() if name == "log_soft_topk" else p
    if name == "fsum":
        x, t = scores, orderings.POINTS.unsqueeze(-1).to(scores.dtype)
        return ((x < t).double() + 0.5 * (x == t)).sum(-1)
    if name == "top_k_cross_entropy":
        shares = [so.hard.topk(scores, k)[0, best(scores)[0]] for k in (1, 2)]
        return -sum(p * share for p, share in zip(P_K, shares, strict=True)).log().unsqueeze(0)
    if name == "permutation_cross_entropy":
        p = so.hard.permutation(scores)[0]
        return -p.gather(0, places(scores)).log()[0]
    hard = "soft_quantile" if name == "fsum_inverse" else name
    return orderings.operator(hard, None).hard(scores)[0]


def _even(found):
    n, k = len(found.row.scores), found.row.k
    flat = torch.ones_like(found.answer.value, dtype=torch.float64)
    mixture = sum(p * size for size, p in enumerate(P_K, 1)) / n
    return (
        flat
        * {
            "soft_topk": k / n,
            "log_soft_topk": math.log(k / n),
            "soft_rank": (n + 1) / 2,
            "soft_permutation": 1 / n,
            "fsum": n / 2,
            "permutation_cross_entropy": math.log(n),
            "top_k_cross_entropy": -math.log(mixture),
        }[found.operator]
    )


def _without(found):
    """What the shorter row gives, with a place for the score that takes no part."""
    value, name = found.twin.value, found.operator
    if name in ("soft_rank", "soft_sort", "soft_permutation"):
        mask = torch.arange(len(found.row.scores)) != ABSENT
        return orderings.embedded(orderings.operator(name, None), value[None], mask[None], False)[0]
    own = {"soft_topk": 0.0, "log_soft_topk": -math.inf, "permutation_cross_entropy": 0.0}
    return _with_a_place(value, own[name]) if name in own else value


def _with_a_place(values, own):
    return torch.cat([values[:ABSENT], values.new_tensor([own]), values[ABSENT:]])


def _finite_value(found):
    """An infinity is there where a score has it, and as the logarithm of 0."""
    value = found.answer.value
    infinite = found.scores.isinf().any().item() or found.operator == "log_soft_topk"
    right = ~value.isnan() if infinite else value.isfinite()
    return "" if right.all() else f"it is {value.tolist()}"


# ---- derivatives ---------------------------------------------------------------------------------


def _every(part, test):
    """All gradients of one order pass a test."""

    def check(found):
        for name, gradient in getattr(found.answer, part).items():
            if not test(gradient).all():
                return f"that of {name} is {gradient.tolist()}"
        return ""

    return check


def _near(found, name, gradient, wanted):
    size = wanted.abs().max().item() if wanted.numel() else 0.0
    if ((gradient - wanted).abs() <= 10 * found.tolerance * (1 + size)).all():
        return ""
    return f"that of {name} is {gradient.tolist()}, not {wanted.tolist()}"


def _flat(found):
    gradient = found.answer.first["scores"]
    if not (gradient.abs() <= 1e-6).all():
        return f"that of scores is {gradient.tolist()}"
    return _every("first", torch.isfinite)(found)


def _derivative_without(part):
    def check(found):
        mine, twins = getattr(found.answer, part), getattr(found.twin, part)
        if mine["scores"][ABSENT] != 0:
            return f"that of what takes no part is {mine['scores'][ABSENT].item()}"
        for name, twin in twins.items():
            wanted = _with_a_place(twin, 0.0) if name == "scores" else twin
            words = _near(found, name, mine[name], wanted)
            if words:
                return words
        return ""

    return check


def _derivative_as_twin(found):
    return next(
        (
            words
            for name, gradient in found.answer.first.items()
            if (words := _near(found, name, gradient, found.twin.first[name]))
        ),
        "",
    )


def _derivative_approached(found):
    """That of the score itself is 0; infinite entries of a result, which it has, are left out."""
    far, gradient = found.scores[0].isinf(), found.answer.first["scores"]
    if (gradient[far] != 0).any():
        return f"that of +inf is {gradient[far].tolist()}"
    words = _near(found, "scores", gradient[~far], found.twin.first["scores"][~far])
    return words or _every("first", torch.isfinite)(found)


def _derivative_of_hard(found):
    scores = found.scores.requires_grad_()
    name = "soft_quantile" if found.operator == "fsum_inverse" else found.operator
    value = orderings.operator(name, None).hard(scores)
    (wanted,) = torch.autograd.grad(weighed(found.operator, [found.row], value), scores)
    return _near(found, "scores", found.answer.first["scores"], wanted[0])


def _even_derivative(found):
    """Every score has the same part in every place."""
    weights = weighed(found.operator, [found.row], torch.ones_like(found.answer.value)[None])
    gradient = found.answer.first["scores"]
    wanted = (weights / len(found.row.scores)).expand_as(gradient)
    return _near(found, "scores", gradient, wanted)


def _derivatives(part):
    return {
        Gives.ZERO: _every(part, lambda gradient: gradient == 0),
        Gives.FINITE: _every(part, torch.isfinite),
        Gives.NUMBER: _every(part, lambda gradient: ~gradient.isnan()),
        Gives.WITHOUT: _derivative_without(part),
    }


_CHECKS = {
    "value": {
        Gives.NAN: _equals(math.nan),
        Gives.ZERO: _equals(0.0),
        Gives.ONE: _equals(1.0),
        Gives.MINUS_INFINITY: _equals(-math.inf),
        Gives.WITHOUT: _value_is(_without),
        Gives.APPROACHED: _value_is(lambda found: found.twin.value),
        Gives.AS_ZERO: _value_is(lambda found: found.twin.value),
        Gives.HARD: _value_is(_hard),
        Gives.EVEN: _value_is(_even),
        Gives.FINITE: _finite_value,
    },
    "first": _derivatives("first")
    | {
        Gives.FLAT: _flat,
        Gives.APPROACHED: _derivative_approached,
        Gives.AS_ZERO: _derivative_as_twin,
        Gives.HARD: _derivative_of_hard,
        Gives.EVEN: _even_derivative,
    },
    "second": _derivatives("second"),
}
