"""Calls operators with random arguments: nothing may crash, no argument may change.

    python -m tests.fuzz.run --seed 4711           one problem
    python -m tests.fuzz.run --seed 4711 --shrink  the same with fewer rows and scores, if it fails
    python -m tests.fuzz.run --from 0 --calls 1000 many (tests/fuzz/many.py)
    python -m tests.fuzz.run --levels --most 60    on every SIMD level that this CPU has
    python -m tests.fuzz.run --calls 400000 --jobs 2 --state build/fuzz.json
                                                   in two processes; again, to go on after a stop

Every answer of the compiled kernels is judged by itself (tests/fuzz/decent.py), beside plain
torch, also in float64 (tests/fuzz/judges.py), and, where all is small, beside the definition in
extended precision (tests/fuzz/oracle.py). What failed, or crashed, is named by its line.
"""

import argparse
import math
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import torch

import softorder as so
from softorder.kernels import _native
from tests.fuzz import judges, oracle, problems, shrinking, values
from tests.fuzz.decent import decent
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
        upstream = _upstream_of(problem, result)
        gradients = torch.autograd.grad(result, inputs, upstream, allow_unused=True)
    return Answer(result.detach(), dict(zip(("scores", *problem.learned), gradients, strict=True)))


def _upstream_of(problem, result):
    layout = problem.layout if result.dim() else "plain"
    return _upstream(problem.seed, result.shape, result.dtype, layout)


@lru_cache(maxsize=4)
def _upstream(seed, shape, dtype, layout):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return values.LAYOUTS[layout](made.bfloat16().to(dtype))


def check(problem, levels=None):
    """What is wrong, in words, if anything is.

    On all of these SIMD levels, or on the one in use. Plain torch is asked once for all of them,
    and not at all where no compiled kernel ran: its answer is there, for every level.
    """
    others, exact = {}, {}
    for level in levels or [_native.level()]:
        before = _native.calls.total()
        with _native.use_level(level):
            wrong = _check(problem, others, exact)
        if wrong:
            return wrong if levels is None else f"{wrong}, level {level}"
        if _native.calls.total() == before:
            break
    return ""


def _check(problem, others, exact):
    arguments = [problem.scores, *problem.options.values()]
    memory = [values.whole(v) for v in arguments if isinstance(v, torch.Tensor)]
    before, calls = [bits.clone() for bits in memory], _native.calls.total()
    found = solve(problem, "native")
    if not all(torch.equal(*pair) for pair in zip(before, memory, strict=True)):
        return "an argument was changed"
    wrong = decent(problem, found)
    if wrong or problem.scores.numel() > _COMPARED:
        return wrong
    if not others:
        if _native.calls.total() != calls:
            others["plain torch"] = solve(problem, "torch")
        if problem.scores.dtype is not torch.float64:
            others["float64"] = solve(problem.widened(), "torch")
    wrong = next(filter(None, (judges.agree(problem, found, o, w) for w, o in others.items())), "")
    return wrong or oracle.agree(problem, found, _upstream_of(problem, found.result), exact)


@dataclass
class Tally:
    """What came of some problems: how many of what, and a line for each failure."""

    counts: Counter = field(default_factory=Counter)  # by dtype, operator, "problems", "calls"
    failures: list = field(default_factory=list)

    def add(self, other):
        self.counts.update(other.counts)
        self.failures += other.failures

    def __str__(self):
        problems, calls = self.counts["problems"], self.counts["compiled calls"]
        names = sorted(self.counts.keys() - {"problems", "compiled calls"})
        return (
            f"{problems} problems ({', '.join(f'{name} {self.counts[name]}' for name in names)}), "
            f"{calls} calls of compiled kernels, {len(self.failures)} failures"
        )


def run(seeds, stop_after=math.inf, most=problems.MOST, levels=None, show=print):
    """Solves the problems of these seeds, each shown before it is called."""
    tally = Tally()
    begin, calls = time.process_time(), _native.calls.total()
    for seed in seeds:
        if time.process_time() - begin > stop_after:
            break
        problem = problems.make(seed, most)
        show(f"python -m tests.fuzz.run {problem}")
        torch.default_generator.manual_seed(seed)  # torch.manual_seed keeps a stack for each GPU
        _native.threads = lambda count=problem.threads: count
        try:
            wrong = check(problem, levels)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        tally.counts.update(("problems", problem.operator, problem.dtype))
        if wrong:
            tally.failures.append(f"python -m tests.fuzz.run {problem}\n    {wrong}")
            show(f"    {wrong}")
    tally.counts["compiled calls"] = _native.calls.total() - calls
    return tally


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


def main(arguments=None):
    from tests.fuzz import many

    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, help="of one problem")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--calls", type=int, default=1000, help="how many problems")
    parser.add_argument("--most", type=int, default=problems.MOST, help="scores of a problem")
    parser.add_argument("--seconds", type=float, default=1e9, help="of CPU time, then stop")
    parser.add_argument("--operator", nargs="+", help="these alone")
    parser.add_argument("--levels", action="store_true", help="every SIMD level of this CPU")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--state", type=Path, help="file that keeps what is done, to go on from")
    parser.add_argument("--shrink", action="store_true", help="the problem of --seed, made small")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    levels = tuple(_native.usable_levels()) if given.levels else None
    if given.seed is None and given.shrink:
        parser.error("--shrink makes one problem small: which --seed?")
    if given.seed is not None:
        return _one(given, levels)
    operators = tuple(given.operator) if given.operator else None
    plan = many.Plan(given.first, given.calls, given.most, operators, levels)
    state = many.run_all(plan, given.jobs, given.state, given.seconds, many.Progress())
    print(state.summary())
    return 1 if state.tally.failures else 0


def _one(given, levels):
    if not given.shrink:
        tally = run([given.seed], most=given.most, levels=levels)
        print(tally)
        return 1 if tally.failures else 0
    found = smallest(problems.make(given.seed, given.most))
    print(found or f"the problem of --seed {given.seed} does not fail")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
