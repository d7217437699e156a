"""The temperature of a loss, chosen on validation data."""

from __future__ import annotations

from experiments.topk_classification.candidates import Candidate
from experiments.topk_classification.splits import Data
from experiments.topk_classification.training import run

_SEED = 1_000_000  # that no trial uses
_BEYOND = 3  # steps outside the grid, at most, at either end


def tuned(data: Data, candidate: Candidate, temperatures: tuple[float, ...]) -> Candidate:
    """With the one of the temperatures that has the best sum of top-1 and top-5.

    All the training data takes part: fewer steps may want another temperature. Where the best is at
    an end of the grid, the grid is continued until it is not, by steps as its last one: what suits
    one loss must not be what another cannot reach.
    """
    grid = sorted(temperatures)
    score = {t: _score(data, candidate.at(t)) for t in grid}
    for _ in range(_BEYOND if len(grid) > 1 else 0):
        grid = sorted(score)
        best = max(score, key=score.__getitem__)
        if best == grid[0]:
            further = best**2 / grid[1]
        elif best == grid[-1]:
            further = best**2 / grid[-2]
        else:
            break
        score[further] = _score(data, candidate.at(further))
    return candidate.at(max(score, key=score.__getitem__))


def _score(data: Data, candidate: Candidate) -> float:
    result = run(data, candidate, _SEED, data.validation)
    return result.top1 + result.top5
