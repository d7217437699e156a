"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, mean
from experiments.paper import Paper
from experiments.reading import against, claim, still_moving
from experiments.trials import Trials
from experiments.words import listed, span

CONTESTS = (Contest("penalised", "penalised loss", digits=4),)
_K = Contest("k", "k", digits=1)


def read(trials: Trials, _paper: Paper) -> list[str]:
    contest = CONTESTS[0]
    scores = contest.groups(trials).get("", {})
    fixed = {arm: scores[arm] for arm in scores if arm.startswith("fixed")}
    learned = [arm for arm in scores if arm.startswith("learned")]
    if not fixed or not learned:
        return []
    sizes = {arm: mean(values) for arm, values in _K.groups(trials).get("", {}).items()}
    best = contest.order(fixed)[0]
    starts = listed([arm.rpartition(" = ")[2] for arm in learned])
    ends = span(_K, [sizes[arm] for arm in learned])
    nearest = [min(fixed, key=lambda arm: abs(sizes[arm] - sizes[one])) for one in learned]
    excess = [mean(scores[arm]) / mean(scores[best]) - 1 for arm in learned]
    low, high = (f"{100 * end:+.1f} %" for end in (min(excess), max(excess)))
    return [
        f"Of the fixed k, {sizes[best]:g} has the least penalised loss; from starts of {starts} "
        f"the learned k ends at {ends}, with a penalised loss that differs from it by "
        f"{low if low == high else f'{low} to {high}'}.",
        against(contest, scores, best, learned, list(fixed)),
        claim(
            "a learned k ends nearer to the best of the fixed k than to any other of them",
            all(one == best for one in nearest),
        ),
        still_moving(Contest("loss", "test loss"), trials),
    ]
