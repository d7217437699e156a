"""A call of a public operator with random arguments: the same one for the same seed."""

import itertools
import math
import random
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

import softorder as so
from softorder.kernels.network.comparators import COMPARATORS
from softorder.relaxations import NetworkMethod
from tests.fuzz import values

MOST = 70_000  # scores in a row, rows, or both together
_EDGES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 16_384, 65_536)  # one more, one less
#: At ties there is more than one derivative, and the choice is free.
_KINKED = {row.name for row in so.methods() if "kinks at ties" in row.smoothness}
_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Problem:
    seed: int
    operator: str
    method: object
    scores: torch.Tensor
    dim: int  # along which they compete
    options: dict
    threads: int
    kind: str  # of the scores
    layout: str
    ordinary: bool  # compiled kernels and plain torch have to agree
    learned: tuple = field(default=())  # which arguments want a gradient, beside the scores
    most: int = MOST  # scores that it could have had

    @property
    def name(self):
        """Of the method."""
        return getattr(self.method, "name", self.method)

    @property
    def dtype(self):
        """Its name."""
        return str(self.scores.dtype).removeprefix("torch.")

    @cached_property
    def temperature(self):
        return torch.as_tensor(self.options["temperature"], dtype=torch.float64)

    @cached_property
    def rows(self):
        """The scores as the operator sees them, rows last: what takes no part is at -inf."""
        scores = self.scores if self.options.get("largest", True) else -self.scores
        mask = self.options.get("mask")
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return scores.movedim(self.dim, -1).double()

    def widened(self):
        """The same in float64, the numbers as they are."""
        alike = ("targets", "weights")  # which want the dtype of the scores
        options = {k: v.double() if k in alike else v for k, v in self.options.items()}
        return replace(self, scores=self.scores.double(), options=options)

    def __str__(self):
        shape = tuple(self.scores.shape)
        options = ", ".join(f"{key}={_short(value)}" for key, value in self.options.items())
        small = "" if self.most == MOST else f" --most {self.most}"
        return (
            f"--seed {self.seed}{small}  # {self.operator} by {self.name}, {self.kind} {shape} "
            f"{self.dtype}, {self.layout}, {options}, {self.threads} threads, gradients of scores"
            + "".join(f", {name}" for name in self.learned)
        )


def _short(value):
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return f"{tuple(value.shape)}" if value.dim() else f"tensor({value.item():.6g})"


# ---- what is called ------------------------------------------------------------------------------


def _cases():
    """(operator, method, the longest row that it can be asked to take)."""
    cases = [(row.operator, row.name, _longest(row.cost)) for row in so.methods()]
    kinds = itertools.cycle((None, *so.networks.SELECTION_KINDS))
    for comparator, operator in itertools.product(COMPARATORS, NetworkMethod.operators):
        cases.append((operator, NetworkMethod(next(kinds), comparator), 300))
    cases += [("top_k_cross_entropy", name, MOST) for name in so.densities.BUILT_IN]
    return [*cases, ("laplace_sum", "laplace", MOST)]


def _longest(cost):
    if "n³" in cost:
        return 60
    if "n²" in cost or "√" in cost:  # transport, whose windows may be the whole row
        return 600
    if "log²" in cost or "k log n" in cost:  # networks, made comparator by comparator
        return 3000
    return MOST


CASES = _cases()


def make(seed, most=MOST):
    """The problem of this seed. Consecutive seeds go through all operators and methods."""
    choose = random.Random(seed)
    operator, method, longest = CASES[seed % len(CASES)]
    ordinary = choose.random() < 0.4
    dim, shape = _shape(choose, operator, longest, most)
    dtype = choose.choice(_DTYPES)
    kinds = [*values.ORDINARY] if ordinary else [*values.ORDINARY, *values.EXTREME]
    if operator == "laplace_sum":  # which takes what is finite
        kinds = [kind for kind in kinds if kind not in values.NOT_FINITE]
    kind = choose.choice(kinds)
    generator = torch.Generator().manual_seed(seed)
    layout = choose.choice([*values.LAYOUTS])
    scores = values.LAYOUTS[layout](values.scores(kind, generator, shape, dtype))
    drawing = _Drawing(choose, generator, scores, dim, ordinary)
    options = drawing.options(operator, method)
    return Problem(
        seed=seed,
        operator=operator,
        method=method,
        scores=scores,
        dim=dim,
        options=options,
        threads=choose.choice((1, 4)),
        kind=kind,
        layout=layout,
        ordinary=ordinary
        and dtype in (torch.float32, torch.float64)
        and not (kind == "ties" and method in _KINKED),
        learned=tuple(
            name
            for name in ("k", "temperature", "q", "weights", "targets", "points", "levels")
            if _real(options.get(name)) and choose.random() < 0.5
        ),
        most=most,
    )


def _real(value):
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point


# ---- shapes --------------------------------------------------------------------------------------


def _shape(choose, operator, longest, most):
    """An axis along which scores compete, and the shape; not too many in all."""
    n = _size(choose, min(longest, most))
    n = max(n, int(operator == "top_k_cross_entropy"))  # which wants a class
    room = most // max(n, 1)
    if operator == "soft_permutation":
        room = most // max(n * min(n, 40), 1)
    if longest < MOST:  # a matrix for every row
        room = min(room, 1 + 10**6 // max(n * n, 1))
    shapes = {
        "row": (n,),
        "matrix": (min(_size(choose, room), room), n),
        "blocks": (choose.randint(0, 3), min(_size(choose, max(room // 3, 1)), room // 3 + 1), n),
        "full": (max(room, 1), n),  # enough for several threads
    }
    *rows, n = shapes[choose.choice([*shapes])]
    dim = {"laplace_sum": -1, "top_k_cross_entropy": min(len(rows), 1)}.get(operator)
    if dim is None:
        dim = choose.randrange(-len(rows) - 1, len(rows) + 1)
    rows.insert(dim % (len(rows) + 1), n)
    return dim, tuple(rows)


def _size(choose, most):
    """0 to most: small ones often, and those beside a power of two."""
    kind = choose.random()
    if kind < 0.05:
        return 0
    if kind < 0.35:
        return min(most, choose.randint(1, 70))
    if kind < 0.6:
        return max(0, min(most, choose.choice(_EDGES) + choose.randint(-1, 1)))
    return min(most, int(math.exp(choose.uniform(0, math.log(most + 1)))))


# ---- the other arguments -------------------------------------------------------------------------


class _Drawing:
    def __init__(self, choose, generator, scores, dim, ordinary):
        self.choose, self.generator, self.ordinary = choose, generator, ordinary
        self.scores, self.dim = scores, dim
        self.n = scores.shape[self.dim]
        self.rows = scores.movedim(self.dim, -1).shape[:-1]

    def options(self, operator, method):
        draw = getattr(self, f"_{operator}")
        options = draw(method)
        options["temperature"] = self._temperature()
        return options

    def _soft_topk(self, method):
        longest = self._longest_list(method)
        options = {"k": self._k(longest), "dim": self.dim, **self._mask()}
        options["largest"] = self.choose.random() < 0.5
        return options

    _log_soft_topk = _soft_topk

    def _soft_rank(self, _):
        options = {"dim": self.dim, **self._mask()}
        options["descending"] = self.choose.random() < 0.5
        return options

    _soft_sort = _soft_rank

    def _soft_permutation(self, method):
        options = self._soft_rank(method)
        most = min(self.n, 40)
        if most < self.n or self.choose.random() < 0.5:
            options["k"] = self.choose.randint(0, most)
        return options

    def _soft_quantile(self, _):
        q = self.choose.choice((self.choose.random(), self._uniform(3), 0.0, 1.0, 0.5))
        return {"q": q, "dim": self.dim, **self._mask()}

    def _fsum(self, _):
        points = torch.randn(self._few_along_dim(), generator=self.generator)
        return {"points": points.to(self.choose.choice(_DTYPES)), "dim": self.dim, **self._mask()}

    def _fsum_inverse(self, _):
        levels = self._uniform(*self._few_along_dim()) * self.n
        return {"levels": levels, "dim": self.dim, **self._mask()}

    def _few_along_dim(self):
        """The shape of a few points for all rows, or for each of them."""
        few = self.choose.choice((0, 1, 2, 7))
        if self.choose.random() < 0.5:
            return (few,)
        shape = list(self.scores.shape)
        shape[self.dim] = few
        return tuple(shape)

    def _permutation_cross_entropy(self, _):
        places = torch.rand(*self.rows, self.n, generator=self.generator).argsort(-1)
        return {"target": places.movedim(-1, self.dim), "dim": self.dim, "reduction": "none"}

    def _top_k_cross_entropy(self, _):
        target = torch.randint(self.n, self.rows, generator=self.generator)
        share = self._uniform(min(self.n, 5))
        return {
            "target": target,
            "p_k": share / share.sum(),
            "top1": self.choose.choice(("softmax", "operator")),
            "reduction": "none",
        }

    def _laplace_sum(self, _):
        count = min(_size(self.choose, 2000), 100_000 // max(self.rows.numel(), 1))
        shape = (*self.rows, count)
        options = {"targets": torch.randn(shape, generator=self.generator).to(self.scores.dtype)}
        if self.choose.random() < 0.5:
            weights = torch.randn(self.scores.shape, generator=self.generator)
            options["weights"] = weights.to(self.scores.dtype)
        return options

    def _longest_list(self, method):
        """How large k may be: some methods form k rows of n, and networks grow with k."""
        lists = method not in so.densities.BUILT_IN and method != "renormalized_sigmoid"
        return min(self.n, 20) if lists else self.n

    def _k(self, most):
        kind = self.choose.choice(("end", "whole", "real", "tensor", "rows"))
        if kind == "end":
            return self.choose.choice((0, most))
        if kind == "whole":
            return self.choose.randint(0, most)
        if kind == "real":
            return self.choose.uniform(0, most)
        return self._uniform(*(self.rows if kind == "rows" else ())) * most

    def _mask(self):
        kind = self.choose.choice(("none", "none", "some", "one_row", "nothing"))
        if kind == "none":
            return {}
        shape = self.scores.shape if kind == "some" else self.scores.shape[-1:]
        share = 0 if kind == "nothing" else self.choose.random()
        return {"mask": torch.rand(shape, generator=self.generator) < share}

    def _temperature(self):
        reach = 1.0 if self.ordinary else self.choose.choice((1.0, 30.0))
        kind = self.choose.choice(("number", "tensor", "rows"))
        if kind == "number":
            return 10 ** self.choose.uniform(-reach, reach)
        shape = self.rows if kind == "rows" else ()
        return 10 ** ((2 * self._uniform(*shape) - 1) * reach)

    def _uniform(self, *shape):
        return torch.rand(shape, generator=self.generator, dtype=torch.float64)
