"""Calls operators with random arguments: nothing may crash, no argument may change.

    python -m tests.fuzz.run --seed 4711           one problem
    python -m tests.fuzz.run --seed 4711 --shrink  the same with fewer rows and scores, if it fails
    python -m tests.fuzz.run --from 0 --calls 1000 many, each on a line before it is called
    python -m tests.fuzz.run --levels --most 60    on every SIMD level that this CPU has

Every answer of the compiled kernels is judged (tests/fuzz/judges.py): by itself, beside plain
torch, and beside plain torch in float64. A line that was printed last before a crash says how to
see it again.
"""

import argparse
import itertools
import sys
import time
import warnings
from collections import Counter

import torch

import softorder as so
from softorder.kernels import _native
from tests.fuzz import judges, problems, shrinking, values
from tests.fuzz.judges import Answer

_OPERATORS = {
    "laplace_sum": lambda scores, method, **options: so.laplace_sum(scores, **options),
    "permutation_cross_entropy": so.losses.permutation_cross_entropy,
    "top_k_cross_entropy": so.losses.top_k_cross_entropy,
}
_COMPARED = 20_000  # scores at the most: plain torch takes its time


def solve(problem, kind):
    """The result and its gradients, by one kind of kernel."""
    scores = problem.scores.detach().requires_grad_()
    options = dict(problem.options)
    for name in problem.learned:
        options[name] = options[name].detach().requires_grad_()
    operator = _OPERATORS.get(problem.operator) or getattr(so, problem.operator)
    with _native.use(kind):
        result = operator(scores, method=problem.method, **options)
        inputs = [scores, *(options[name] for name in problem.learned)]
        upstream = torch.randn(result.shape, generator=torch.Generator().manual_seed(problem.seed))
        layout = problem.layout if result.dim() else "plain"
        upstream = values.LAYOUTS[layout](upstream.bfloat16().to(result.dtype))
        gradients = torch.autograd.grad(result, inputs, upstream, allow_unused=True)
    return Answer(result.detach(), dict(zip(("scores", *problem.learned), gradients, strict=True)))


def check(problem, levels=None):
    """What is wrong, in words, if anything is.

    On all of these SIMD levels, or on the one in use. Plain torch is asked once for all of them.
    """
    others = {}
    for level in levels or [_native.level()]:
        with _native.use_level(level):
            wrong = _check(problem, others)
        if wrong:
            return wrong if levels is None else f"{wrong}, level {level}"
    return ""


def _check(problem, others):
    arguments = [problem.scores, *problem.options.values()]
    memory = [values.whole(v) for v in arguments if isinstance(v, torch.Tensor)]
    before = [bits.clone() for bits in memory]
    found = solve(problem, "native")
    if not all(torch.equal(*pair) for pair in zip(before, memory, strict=True)):
        return "an argument was changed"
    wrong = judges.decent(problem, found)
    if wrong or problem.scores.numel() > _COMPARED:
        return wrong
    if not others:
        others["plain torch"] = solve(problem, "torch")
        if problem.scores.dtype is not torch.float64:
            others["float64"] = solve(problem.widened(), "torch")
    return next(filter(None, (judges.agree(problem, found, o, w) for w, o in others.items())), "")


def run(seeds, stop_after, most=problems.MOST, levels=None):
    """Solves the problems of these seeds; returns how many were called, and the failures."""
    called, failures, kinds = 0, [], Counter()
    begin = time.process_time()
    for seed in seeds:
        if time.process_time() - begin > stop_after:
            break
        problem = problems.make(seed, most)
        print(f"python -m tests.fuzz.run {problem}", flush=True)
        torch.manual_seed(seed)
        _native.threads = lambda count=problem.threads: count
        try:
            wrong = check(problem, levels)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        called += 1
        kinds[problem.operator] += 1
        kinds[str(problem.scores.dtype).removeprefix("torch.")] += 1
        if wrong:
            failures.append(f"python -m tests.fuzz.run {problem}\n    {wrong}")
            print("   ", wrong, flush=True)
    return called, failures, kinds


def smallest(problem):
    """The problem that is left of a failing one, as code; "" where it does not fail."""

    def words(problem):
        try:
            return check(problem)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def kind(said):
        """A wrong answer is not made small to a wrong call."""
        first = said.partition(":")[0]
        return first if first.endswith("Error") else bool(said)

    wanted = kind(words(problem))
    if not wanted:
        return ""
    small = shrinking.shrink(problem, lambda smaller: kind(words(smaller)) == wanted)
    options = ", ".join(f"{name}={_code(value)}" for name, value in small.options.items())
    return (
        f"{small.operator}({_code(small.scores)}, method={small.name!r}, {options})\n"
        f"    {words(small)}"
    )


def _code(value):
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return f"tensor({value.tolist()}, dtype={value.dtype})"


def _seeds(first, operators):
    """From the first on, of the problems of these operators; of all if None."""
    for seed in itertools.count(first):
        operator, *_ = problems.CASES[seed % len(problems.CASES)]
        if operators is None or operator in operators:
            yield seed


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("--seed", type=int, help="of one problem")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--calls", type=int, default=1000, help="how many problems")
    parser.add_argument("--most", type=int, default=problems.MOST, help="scores of a problem")
    parser.add_argument("--seconds", type=float, default=1e9, help="of CPU time, then stop")
    parser.add_argument("--operator", nargs="+", help="these alone")
    parser.add_argument("--levels", action="store_true", help="every SIMD level of this CPU")
    parser.add_argument("--shrink", action="store_true", help="the problem of --seed, made small")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    if given.shrink and given.seed is None:
        parser.error("--shrink makes one problem small: which --seed?")
    if given.shrink:
        found = smallest(problems.make(given.seed, given.most))
        print(found or f"the problem of --seed {given.seed} does not fail")
        return 1 if found else 0
    seeds = itertools.islice(_seeds(given.first, given.operator), given.calls)
    if given.seed is not None:
        seeds = [given.seed]
    levels = _native.usable_levels() if given.levels else None
    called, failures, kinds = run(seeds, given.seconds, given.most, levels)
    for line in failures:
        print(line, file=sys.stderr)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(kinds.items()))
    print(
        f"{called} problems ({counts}), {sum(_native.calls.values())} calls of compiled kernels, "
        f"{len(failures)} failures, {' and '.join(levels or [_native.level()])}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
