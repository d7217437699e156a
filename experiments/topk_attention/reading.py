"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, Scores, verdicts
from experiments.paper import Paper
from experiments.reading import against, along, claim, sides
from experiments.topk_attention.config import CANDIDATES
from experiments.trials import Trials
from experiments.words import quoted, span_signed

CONTESTS = (
    Contest("bleu", "BLEU", True),
    Contest("loss", "test loss per word", digits=3, deciding=False),
)
_HARD = Contest("hard", "BLEU", True)
_CURVE = Contest("", "loss per word", digits=3)
_BASE = "softmax"


def read(trials: Trials, _paper: Paper) -> list[str]:
    contest = CONTESTS[0]
    scores = contest.groups(trials).get("", {})
    soft = [arm for arm in scores if arm != _BASE]
    return [
        against(contest, scores, _BASE, soft),
        _hard(trials, scores),
        _chosen(trials),
        along(_CURVE, trials, "curve_loss"),
        _claimed(contest, scores, soft),
    ]


def _hard(trials: Trials, scores: Scores) -> str:
    """What it costs to take the k largest alone at inference."""
    hard = _HARD.groups(trials).get("", {})
    gaps = [
        values[seed] - scores[arm][seed]
        for arm, values in hard.items()
        for seed in values
        if arm in scores and seed in scores[arm]
    ]
    if not gaps:
        return ""
    return f"Hard attention at inference changes it by {span_signed(_HARD, gaps)} in single trials."


def _chosen(trials: Trials) -> str:
    """What each arm took of its candidates."""
    parts = []
    for arm in trials.arms:
        numbers = trials.values(arm, "choice")[:1]
        every = CANDIDATES["softmax" if arm == _BASE else "top-k"]
        parts += [f"{quoted(arm)} {every[i]}" for i in numbers if i < len(every)]
    return f"Chosen on the validation part: for {'; for '.join(parts)}." if parts else ""


def _claimed(contest: Contest, scores: Scores, soft: list[str]) -> str:
    if _BASE not in scores or not soft:
        return ""
    better, _, _, unclear = sides(contest, verdicts(scores, [(arm, _BASE) for arm in soft]))
    shown = None if len(unclear) == len(soft) else bool(better)
    return claim("top-k attention has a higher BLEU than softmax", shown)
