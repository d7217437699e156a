"""Makes a failing problem small: fewer rows, then fewer scores, as long as it fails.

python -m tests.fuzz.run --seed 4711 --shrink
"""

from dataclasses import replace

import torch


def shrink(problem, fails):
    """The smallest problem that was found; `fails` says of one whether it does."""
    axes = [a for a in range(problem.scores.dim()) if a != _scores_axis(problem)]
    for axis in (*axes, _scores_axis(problem)):
        problem = _along(problem, axis, fails)
    return problem


def _along(problem, axis, fails):
    """Leaves out halves, quarters, ... and single entries of an axis."""
    size = problem.scores.shape[axis] // 2
    while size:
        start = 0
        while start < problem.scores.shape[axis] and problem.scores.shape[axis] > size:
            length = problem.scores.shape[axis]
            kept = [i for i in range(length) if not start <= i < start + size]
            smaller = part(problem, axis, torch.tensor(kept))
            if smaller is not None and fails(smaller):
                problem = smaller
            else:
                start += size
        size //= 2
    return problem


def part(problem, axis, kept):
    """The problem of some entries of an axis of the scores; None where there is none."""
    if axis == _scores_axis(problem):
        options = _fewer_scores(problem, kept)
    else:
        options = {name: _rows(problem, v, axis, kept) for name, v in problem.options.items()}
    if options is None:
        return None
    scores = problem.scores.index_select(axis, kept)
    return replace(problem, scores=scores, options=options, layout="plain")


def _scores_axis(problem):
    return problem.dim % problem.scores.dim()


def _rows(problem, value, axis, kept):
    """A tensor that has the axis, from behind or beside the scores; others stay."""
    if not isinstance(value, torch.Tensor) or not value.dim():
        return value
    dim, shape = _scores_axis(problem), problem.scores.shape
    if value.dim() == len(shape):
        return value.index_select(axis, kept) if value.shape[axis] == shape[axis] else value
    if value.shape == shape[:dim] + shape[dim + 1 :]:  # a number for each row
        return value.index_select(axis - (axis > dim), kept)
    if value.shape == shape[-1:] and axis == len(shape) - 1:  # a mask that all rows share
        return value.index_select(0, kept)
    return value


def _fewer_scores(problem, kept):
    options, dim = dict(problem.options), _scores_axis(problem)
    for name in {"k", "levels"} & {*options}:
        options[name] = _at_most(options[name], len(kept))
    for name in ("mask", "weights"):
        value = options.get(name)
        if value is not None and value.dim() == problem.scores.dim():
            options[name] = value.index_select(dim, kept)
        elif value is not None and dim == problem.scores.dim() - 1:
            options[name] = value.index_select(0, kept)
    if "target" in options:
        options["target"] = _targets(problem, kept)
    return None if "target" in options and options["target"] is None else options


def _at_most(k, n):
    return k.clamp(max=n) if isinstance(k, torch.Tensor) else min(k, n)


def _targets(problem, kept):
    """Places are numbered anew; a class has to be among those that are kept."""
    target = problem.options["target"]
    if problem.operator == "permutation_cross_entropy":
        left = target.index_select(_scores_axis(problem), kept)
        return left.argsort(_scores_axis(problem)).argsort(_scores_axis(problem))
    if len(problem.options["p_k"]) > len(kept) or not torch.isin(target, kept).all():
        return None
    return torch.searchsorted(kept, target)
