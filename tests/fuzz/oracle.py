"""The third judge: small problems by a density, from the definition, in extended precision.

Thresholds come from bisection of Σ F((x_i - b)/τ) = k, with b measured from the score next to it
in long doubles: their range has room for differences of the largest numbers over the smallest τ.
Points of a sort or a quantile are not solved for: the F-sum has to pass their level within the
room that they have. F and f are those of tests/oracles, which know of no kernel.
"""

import math

import numpy as np
import torch

from tests.fuzz import judges, units
from tests.fuzz.judges import Answer
from tests.oracles.densities import DENSITIES

MOST = 64  # scores of a problem: differences of all pairs, a hundred times
_SETTLED = 1e-200  # Σ f(u) of a threshold that its own tails hold, and not those in a wide gap
_EDGE = 1e-6  # of the uniform density, next to which rounding decides whether f is 1 or 0


@np.errstate(all="ignore")  # what overflows and underflows is what is asked for
def agree(problem, found, upstream, kept):
    """What an answer and the definition disagree about, in words, if anything.

    `kept` is a dict of the caller, in which the oracle's answer stays for the next to be judged.
    """
    if problem.name not in DENSITIES or not 0 < problem.scores.numel() <= MOST:
        return ""
    if problem.operator not in _SOLVERS:
        return ""
    if problem.operator in _LEVELS and (words := _misplaced(problem, found.result)):
        return words
    if not kept:
        kept["rows"], kept["answer"] = _SOLVERS[problem.operator](problem, upstream)
    rows, answer = kept["rows"], kept["answer"]
    if not rows.any():
        return ""
    parts = {name: _rows_of(problem, found.gradients[name])[rows] for name in answer.gradients}
    result = None if answer.result is None else _rows_of(problem, found.result)[rows]
    part = Answer(result, parts)
    return judges.agree(problem, part, answer, "extended precision")


# ---- rows ----------------------------------------------------------------------------------------


def _rows_of(problem, values):
    """As rows of a matrix, or as a list of matrices."""
    if problem.operator == "soft_permutation" and values.shape != problem.scores.shape:
        return values.flatten(0, -3) if values.dim() > 2 else values.unsqueeze(0)
    return _flat(values.movedim(problem.dim, -1))


def _flat(values):
    return values.reshape(math.prod(values.shape[:-1]), values.shape[-1])


def _scores(problem):
    """The rows, with -inf for what takes no part, and τ of each."""
    x = _flat(problem.rows).numpy().astype(np.longdouble)
    return x, _per_row(problem, problem.temperature)


def _upstream_rows(problem, upstream):
    return _flat(upstream.movedim(problem.dim, -1)).double().numpy().astype(np.longdouble)


def _per_row(problem, value):
    shape = problem.rows.shape[:-1]
    value = torch.as_tensor(value, dtype=torch.float64).detach().expand(shape)
    return value.reshape(-1).numpy().astype(np.longdouble)


def _usable(x):
    """Rows without NaN and +inf, of which other judges know what is right."""
    return ~(np.isnan(x) | (x == np.inf)).any(1)


def _turned(problem, x):
    """For an order from the top, signs change; what takes no part is -inf still."""
    return np.where(np.isneginf(x), x, -x) if problem.options["descending"] else x


def _answer(rows, result, **gradients):
    tensors = {name: torch.from_numpy(v[rows].astype(float)) for name, v in gradients.items()}
    return torch.from_numpy(rows), Answer(torch.from_numpy(result[rows].astype(float)), tensors)


# ---- F -------------------------------------------------------------------------------------------


def _tail(law, u):
    return law.tail(np.abs(u).astype(float)).astype(np.longdouble)


def _cdf(law, u):
    tail = _tail(law, u)
    return np.where(u > 0, 1 - tail, tail)


def _density(law, u):
    return law.pdf(np.abs(u).astype(float)).astype(np.longdouble)


def _mass(law, u, less=0):
    """Σ F(u), less a number, along the last axis; -inf counts for nothing.

    Where the number is whole, tails that are lost beside it are still what remains.
    """
    above, tail = u > 0, _tail(law, u)
    return above.sum(-1) - less + np.where(above, -tail, tail).sum(-1)


def _between(law, upper, lower):
    """F(upper) - F(lower), upper above: of two tails on one side without a detour through 1."""
    before, behind = _tail(law, lower), _tail(law, upper)
    apart = np.where(upper <= 0, behind - before, before - behind)
    return np.where((lower < 0) & (upper > 0), 1 - before - behind, apart)


# ---- thresholds ----------------------------------------------------------------------------------


def _distances(law, x, k, tau):
    """u_i = (x_i - b)/τ with Σ F(u_i) = k, for every row and its 0 < k < the scores that are there.

    b is between two neighbours of the sorted row, in one half of that gap, or beyond the row's end
    by F⁻¹(k/m) τ at the most: its distance from the score there is found by halving.
    """
    apart = (x[:, None, :] - np.where(np.isneginf(x), np.nan, x)[:, :, None]) / tau[:, None, None]
    less = _mass(law, np.where(np.isnan(apart), -np.inf, apart), k[:, None]) < 0
    there = ~np.isneginf(x)
    upper = np.where(there & less, x, np.inf).min(1)  # b is below these scores
    lower = np.where(there & ~less, x, -np.inf).max(1)
    inside, end = np.isfinite(lower) & np.isfinite(upper), _furthest(law, k / there.sum(1)) * tau
    half = np.where(inside, np.where(inside, upper, 0) - np.where(inside, lower, 0), 2 * end) / 2
    high = np.where(inside, _mass(law, _from(x, upper, -half, tau), k) > 0, np.isfinite(upper))
    origin, sign = np.where(high, upper, lower), np.where(high, -1, 1)
    near, far = np.zeros_like(half), half
    steps = 70 + int(max(np.log2(half / tau).max(), 0))
    for _ in range(steps):
        middle = (near + far) / 2
        # from above, b goes down with the distance, and the mass goes up
        reached = sign * _mass(law, _from(x, origin, sign * middle, tau), k) <= 0
        near, far = np.where(reached, near, middle), np.where(reached, middle, far)
    return _from(x, origin, sign * far, tau)


def _from(x, origin, offset, tau):
    return ((x - origin[:, None]) - offset[:, None]) / tau[:, None]


def _furthest(law, share):
    """An a with F(-a) below this share and below 1 less it, doubled until it is."""
    share, a = np.minimum(share, 1 - share), np.ones_like(share)
    while (short := _tail(law, a) > share).any():
        a = np.where(short, 2 * a, a)
    return a


# ---- operators -----------------------------------------------------------------------------------


def _solve_topk(problem, upstream):
    """p, or log p, and with their slopes s in u and q = f/Σ f: ∂/∂x = (s v - q Σ s v)/τ."""
    x, tau = _scores(problem)
    rows, there, law = _usable(x), ~np.isneginf(x), DENSITIES[problem.name]
    count = there.sum(1)
    k = np.minimum(_per_row(problem, problem.options["k"]), count)
    inner = (k > 0) & (k < count) & rows
    u = np.where((k > 0)[:, None] & there, np.inf, -np.inf).astype(np.longdouble)
    if inner.any():
        u[inner] = _distances(law, x[inner], k[inner], tau[inner])
    f, p = np.where(inner[:, None], _density(law, u), 0), _cdf(law, u)
    result, slope = p, f
    if problem.operator == "log_soft_topk":
        log_tail = law.log_tail(np.abs(u).astype(float))
        result = np.where(u > 0, np.log1p(-_tail(law, u)), log_tail)
        slope = np.where(f > 0, f / p, 0)
        inside = (f > _SETTLED) | (problem.name == "uniform")  # whose p is exactly 0 or 1 outside
        rows &= (inside | ~there | ~inner[:, None]).all(1)
    total = f.sum(1, keepdims=True)
    heard = slope * _upstream_rows(problem, upstream)
    mean = f / np.where(total > 0, total, 1) * heard.sum(1, keepdims=True)
    sign = 1 if problem.options.get("largest", True) else -1  # the rows are turned
    rows &= ~_at_an_edge(problem, u)
    return _answer(rows, result, scores=sign * (heard - mean) / tau[:, None])


def _at_an_edge(problem, u):
    """Rows in which rounding decides whether a score is inside the uniform density."""
    return (problem.name == "uniform") & (np.abs(np.abs(u) - 0.5) < _EDGE).any(
        tuple(range(1, u.ndim))
    )


def _solve_rank(problem, upstream):
    """1/2 + Σ_j F(u_ij), u_ij = (x_i - x_j)/τ, and ∂/∂x_i = Σ_j f(u_ij) (v_i - v_j)/τ."""
    x, tau = _scores(problem)
    whole, law = np.isfinite(x).all(1), DENSITIES[problem.name]
    x, tau = _turned(problem, np.where(whole[:, None], x, 0)), tau[:, None, None]
    u = (x[:, :, None] - x[:, None, :]) / tau
    v = _upstream_rows(problem, upstream)
    slopes = _density(law, u) / tau * (v[:, :, None] - v[:, None, :])
    sign = -1 if problem.options["descending"] else 1
    rows = whole & ~_at_an_edge(problem, u)
    return _answer(rows, 0.5 + _mass(law, u), scores=sign * slopes.sum(2))


def _solve_fsum(problem, _):
    """Σ_i F((t - x_i)/τ) over the scores that are there."""
    x, tau = _scores(problem)
    rows, law = _usable(x), DENSITIES[problem.name]
    points = problem.options["points"].detach().double()
    points = points.movedim(problem.dim, -1) if points.dim() > 1 else points
    points = points.expand(*problem.rows.shape[:-1], points.shape[-1])
    t = points.reshape(len(x), -1).numpy().astype(np.longdouble)
    return _answer(rows, _sum_below(law, x, t, tau))


def _sum_below(law, x, t, tau):
    u = (t[:, :, None] - np.where(np.isfinite(x), x, np.inf)[:, None, :]) / tau[:, None, None]
    return _mass(law, np.where(np.isnan(u), -np.inf, u))


def _solve_permutation(problem, _):
    """F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ), Σ_i F((t_j - x_i)/τ) = j, t_0 = -∞, t_n = ∞."""
    x, tau = _scores(problem)
    rows, n, law = np.isfinite(x).all(1), x.shape[1], DENSITIES[problem.name]
    x, tau = _turned(problem, x)[rows], tau[rows]
    count = problem.options.get("k") or n
    u = np.full((len(x), n + 1, n), np.inf, dtype=np.longdouble)
    u[:, 0] = -np.inf
    for j in range(1, min(count + 1, n)) if len(x) else ():
        level = np.full(len(x), n - j, dtype=np.longdouble)  # as much mass is above
        u[:, j] = -_distances(law, x, level, tau)
    p = _between(law, u[:, 1 : count + 1], u[:, :count])
    return torch.from_numpy(rows), Answer(torch.from_numpy(p.astype(float)), {})


# ---- points --------------------------------------------------------------------------------------


def _misplaced(problem, found):
    """Whether the F-sum has not reached a level at its point + room, or has before point - room."""
    x, tau = _scores(problem)
    t, levels = _along_rows(problem, found), _LEVELS[problem.operator](problem, x)
    usable = np.isfinite(x).all(1) if problem.operator == "soft_sort" else _usable(x)
    count, law = (~np.isneginf(x)).sum(1, keepdims=True), DENSITIES[problem.name]
    judged = usable[:, None] & (levels > 0) & (levels < count)
    t, most = t.double(), torch.finfo(found.dtype).max
    t = t.clamp(-most, most)  # where the format ends are points that are further away
    room = judges.ALLOWED * units.unit(problem, "the result", t).numpy().astype(np.longdouble)
    t, slack = t.numpy().astype(np.longdouble), 4 * np.finfo(float).eps * count
    before = _sum_below(law, x, np.where(t <= -most, -np.inf, t - room), tau)
    beyond = _sum_below(law, x, np.where(t >= most, np.inf, t + room), tau)
    wrong = judged & ((before > levels + slack) | (beyond < levels - slack))
    if wrong.any():
        point, level, sums = t[wrong][0], levels[wrong][0], (before[wrong][0], beyond[wrong][0])
        return (
            f"the point {point:.9g} of the level {level:.9g} has sums from {sums[0]:.9g} "
            f"to {sums[1]:.9g} beside it in extended precision"
        )
    return ""


def _solve_points(problem, upstream):
    """∂t/∂x_i = f((t - x_i)/τ)/Σ_j f((t - x_j)/τ), where these do not underflow."""
    x, tau = _scores(problem)
    levels, count = _LEVELS[problem.operator](problem, x), (~np.isneginf(x)).sum(1, keepdims=True)
    rows = (np.isfinite(x).all(1) if problem.operator == "soft_sort" else _usable(x)) & (
        count[:, 0] > 0
    )
    rows &= ((levels > 0) & (levels < count)).all(1)
    law, v = DENSITIES[problem.name], _along_rows(problem, upstream).double().numpy()
    gradient = np.zeros_like(x)
    for j in range(levels.shape[1]) if rows.any() else ():
        u = np.full_like(x, -np.inf)
        u[rows] = _distances(law, x[rows], (count - levels)[rows, j], tau[rows])
        f = _density(law, u)
        total = f.sum(1, keepdims=True)
        gradient += v[:, j : j + 1] * f / np.where(total > 0, total, 1)
        rows = rows & (total[:, 0] > _SETTLED) & ~_at_an_edge(problem, u)
    return torch.from_numpy(rows), Answer(
        None, {"scores": torch.from_numpy(gradient[rows].astype(float))}
    )


def _along_rows(problem, points):
    """Those of a row along the last axis of a matrix."""
    if problem.operator != "soft_quantile":
        return _flat(points.movedim(problem.dim, -1))
    return (
        _flat(points.movedim(0, -1))
        if torch.as_tensor(problem.options["q"]).dim()
        else points.reshape(-1, 1)
    )


def _sort_levels(problem, x):
    levels = np.broadcast_to(np.arange(x.shape[1]) + 0.5, x.shape).astype(np.longdouble)
    return x.shape[1] - levels if problem.options["descending"] else levels


def _quantile_levels(problem, x):
    q = torch.as_tensor(problem.options["q"], dtype=torch.float64).detach()
    return q.reshape(1, -1).numpy().astype(np.longdouble) * (~np.isneginf(x)).sum(1, keepdims=True)


def _inverse_levels(problem, x):
    levels = problem.options["levels"].detach().double()
    levels = levels.movedim(problem.dim, -1) if levels.dim() > 1 else levels
    levels = levels.expand(*problem.rows.shape[:-1], levels.shape[-1])
    return _flat(levels).numpy().astype(np.longdouble)


_LEVELS = {
    "soft_sort": _sort_levels,
    "soft_quantile": _quantile_levels,
    "fsum_inverse": _inverse_levels,
}
_SOLVERS = {
    "soft_topk": _solve_topk,
    "log_soft_topk": _solve_topk,
    "soft_rank": _solve_rank,
    "fsum": _solve_fsum,
    "soft_permutation": _solve_permutation,
    **dict.fromkeys(_LEVELS, _solve_points),
}
