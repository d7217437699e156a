"""The picture of the first page: a soft top-k in five seconds.

    python -m docs.landing

Scores lie on a line. A hard top-k lifts the k largest of them to 1, a soft one lifts all of them
onto a smooth curve, whose place is such that the heights sum to k. One file serves light and dark
pages.
"""

from __future__ import annotations

from pathlib import Path

import torch

import softorder as so

FIGURE = Path(__file__).parent / "figures" / "landing.svg"
SCORES = torch.tensor([-1.7, -0.8, 0.1, 0.58, 1.02, 1.75, 2.6])
K, TAU = 3, 0.3
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 352, 78, 76, 256
LOW, HIGH = -2.3, 3.1

_STYLE = """
  text { font: 15px system-ui, sans-serif; fill: #333 }
  .large { font-size: 17px; font-weight: 600 }
  .axis { stroke: #888; stroke-width: 1 }
  .hard { stroke: #888; stroke-width: 2; fill: none; stroke-dasharray: 5 5 }
  .soft { stroke: #d9480f; stroke-width: 3; fill: none }
  .lift { stroke: #d9480f; stroke-width: 1.5; opacity: .45 }
  .dot { fill: #d9480f }
  .score { fill: #888 }
  .warm { fill: #d9480f }
  .grey { fill: #767676 }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd }
    .soft, .lift { stroke: #ff8c42 }
    .dot, .warm { fill: #ff8c42 }
    .grey { fill: #a6a6a6 }
  }
"""


def picture() -> str:
    """The whole file."""
    weights = so.soft_topk(SCORES, K, temperature=TAU)
    parts = [f"<style>{_STYLE}</style>", *_axes(), _hard(), _curve()]
    for score, weight in zip(SCORES.tolist(), weights.tolist(), strict=True):
        parts += _lifted(score, weight)
    parts += _words(weights)
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Seven scores on a line. A hard top-k lifts the three largest to 1; a soft '
        'top-k lifts each onto a smooth curve, and the heights still sum to 3.">'
        f"\n{inside}\n</svg>\n"
    )


def _x(score: float) -> float:
    return round(LEFT + (score - LOW) / (HIGH - LOW) * (WIDTH - LEFT - 30), 1)


def _y(weight: float) -> float:
    return round(BOTTOM - weight * (BOTTOM - TOP), 1)


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def _axes() -> list[str]:
    lines = [
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - 30}" y1="{_y(y)}" y2="{_y(y)}"/>'
        for y in (0.0, 1.0)
    ]
    ends = [_text(LEFT - 12, _y(y) + 5, f"{y:g}", "grey", "end") for y in (0.0, 1.0)]
    return [*lines, *ends, _text(WIDTH - 30, BOTTOM + 28, "score →", "grey", "end")]


def _hard() -> str:
    """A step between the k-th and the next score."""
    between = _x(SCORES.sort(descending=True).values[K - 1 : K + 1].mean().item())
    corners = [(LEFT, _y(0)), (between, _y(0)), (between, _y(1)), (WIDTH - 30, _y(1))]
    return f'<polyline class="hard" points="{" ".join(f"{x},{y}" for x, y in corners)}"/>'


def _curve() -> str:
    """F((x - b)/τ), b such that all but k of the scores are softly below it."""
    below = torch.tensor([float(len(SCORES) - K)])
    b = so.fsum_inverse(SCORES, below, temperature=TAU)
    grid = torch.linspace(LOW, HIGH, 161)
    heights = so.densities.Laplace().cdf((grid - b) / TAU)
    points = zip(grid.tolist(), heights.tolist(), strict=True)
    return f'<polyline class="soft" points="{" ".join(f"{_x(x)},{_y(y)}" for x, y in points)}"/>'


def _lifted(score: float, weight: float) -> list[str]:
    x, y = _x(score), _y(weight)
    return [
        f'<line class="lift" x1="{x}" x2="{x}" y1="{_y(0)}" y2="{y}"/>',
        f'<circle class="score" cx="{x}" cy="{_y(0)}" r="4"/>',
        f'<circle class="dot" cx="{x}" cy="{y}" r="7"/>',
        _text(x, BOTTOM + 50, f"{weight:.2f}", "warm", "middle"),
    ]


def _words(weights: torch.Tensor) -> list[str]:
    total = f"{weights.sum().item():.0f}"
    return [
        _text(LEFT, 26, "A hard top-k is a step: in or out, and no gradient.", "grey"),
        _text(LEFT, 50, f"A soft top-k is a slope: all scores share k = {K}.", "warm large"),
        _text(LEFT - 12, BOTTOM + 50, "weight", "warm", "end"),
        _text(LEFT, HEIGHT - 14, f"The weights sum to {total}, whatever the scores are.", "large"),
    ]


if __name__ == "__main__":
    FIGURE.write_text(picture(), encoding="utf-8")
