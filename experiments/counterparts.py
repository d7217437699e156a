"""The figures of the four papers, each with what stands beside it here, or why nothing does.

The last section of docs/reproduce.md. A counterpart is a preset, most often with its own picture,
or another page of docs.
"""

from __future__ import annotations

from dataclasses import dataclass

Preset = tuple[str, str]  #: experiment and preset

_HEAD = """\
What stands beside each figure of the four papers; their tables stand beside ours above. Diagrams of
average ranks, as in LapSum's Figure 5, are under every preset with enough cases."""

#: presets whose own picture is on the page
DRAWN: tuple[Preset, ...] = (
    ("knn", "quick"),
    ("knn", "alpha"),
    ("large_mnist_sort", "why"),
    ("learn_k", "seeds"),
    ("root_finding", "million"),
    ("runtime_memory", "quick"),
    ("topk_attention", "tuned"),
    ("topk_sweeps", "quick"),
)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper."""

    paper: str
    number: int
    shows: str
    presets: tuple[Preset, ...] = ()
    pages: tuple[str, ...] = ()  #: of docs, with a picture of the same
    why: str = ""  #: there is nothing, or not all of it

    def __str__(self) -> str:
        """Links, and what is missing."""
        links = [f"[{name}, {preset}](#{name}-{preset})" for name, preset in self.presets]
        links += [f"[{page}]({page})" for page in self.pages]
        return ". ".join(part for part in (", ".join(links), self.why) if part)


_SCHEME = "A scheme, no result"
_NO_GPU = "No GPU here: [GPUs](gpu.md) says how to measure there"
_SOFT, _LAPSUM, _DIFFTOPK, _KHOT = "SOFT top-k", "LapSum", "difftopk", "k-hot"
_TIMES: tuple[Preset, ...] = (("runtime_memory", "quick"),)
_SWEEPS: tuple[Preset, ...] = (("topk_sweeps", "quick"), ("knn", "alpha"))

FIGURES = (
    Figure(_SOFT, 1, "hard and soft top-k", pages=("index.md",)),
    Figure(_SOFT, 2, "a transport plan", pages=("transport.md",)),
    Figure(_SOFT, 3, "plans and shares over ε", pages=("transport.md",)),
    Figure(_SOFT, 4, "how kNN is trained", why=_SCHEME),
    Figure(
        _SOFT,
        5,
        "t-SNE of the features of kNN",
        (("knn", "quick"),),
        why="Of digits; `softorder reproduce knn --preset mnist` draws those of MNIST",
    ),
    Figure(_SOFT, 6, "what top-k attention looks at", (("topk_attention", "tuned"),)),
    Figure(_SOFT, 7, "the gradient", pages=("transport.md",)),
    Figure(_LAPSUM, 1, "how p is computed", why=_SCHEME),
    Figure(_LAPSUM, 2, "soft ranks", pages=("rank.md",)),
    Figure(_LAPSUM, 3, "soft sorts", pages=("rank.md",)),
    Figure(_LAPSUM, 4, "how permutations are made", pages=("methods.md",)),
    Figure(_LAPSUM, 5, "time, memory and ranks, k = n/2", _TIMES),
    Figure(_LAPSUM, 6, "accuracy over α, k = 5", _SWEEPS),
    Figure(_LAPSUM, 7, "error of Σ p = k", _TIMES),
    Figure(_LAPSUM, 8, "accuracy over α and p_k", _SWEEPS),
    Figure(_LAPSUM, 9, "loss and α over the steps", (("large_mnist_sort", "why"),)),
    Figure(_LAPSUM, 10, "time and memory, k = 5", _TIMES),
    Figure(_LAPSUM, 11, "time and memory, k = n/2", _TIMES),
    Figure(_LAPSUM, 12, "time and memory on a GPU, k = 5", why=_NO_GPU),
    Figure(_LAPSUM, 13, "time and memory on a GPU, k = n/2", why=_NO_GPU),
    Figure(_LAPSUM, 14, "time and memory of permutations", _TIMES),
    Figure(_DIFFTOPK, 1, "the loss", why=_SCHEME),
    Figure(_DIFFTOPK, 2, "accuracy over the share of k = 5 and over m", _SWEEPS[:1]),
    Figure(
        _DIFFTOPK,
        3,
        "four sizes of a network before and after fine-tuning",
        (("topk_classification", "kanji-tuned"),),
        why="Of one network: no package registry has ImageNet, or features of it by four",
    ),
    Figure(_KHOT, 1, "how k-hot vectors are drawn", why=_SCHEME),
    Figure(_KHOT, 2, "the capped simplex, and entropy on it", why=_SCHEME),
    Figure(_KHOT, 3, "p over the temperature", pages=("topk.md",)),
    Figure(
        _KHOT,
        4,
        "two scores, k = 1: values and gradients",
        why="Not drawn: with a density, p is its distribution function at (x_1 - x_2)/(2τ)",
    ),
    Figure(_KHOT, 5, "learning k", (("learn_k", "seeds"),)),
    Figure(_KHOT, 6, "time against SOFT top-k and SIMPLE", _TIMES, why="On a CPU"),
    Figure(_KHOT, 7, "samplers side by side", why=_SCHEME),
    Figure(_KHOT, 8, "the error after every iteration, n = 10^6", (("root_finding", "million"),)),
    Figure(_KHOT, 9, "descent on a polynomial", (("polynomial", "quick"),), ("sampling.md",)),
    Figure(_KHOT, 10, "kinds of top-k", why=_SCHEME),
)


def section() -> str:
    """A line for each figure."""
    lines = [f"- {f.paper}, Figure {f.number}, {f.shows}: {f}." for f in FIGURES]
    return "\n".join(["## The papers' figures", "", _HEAD, "", *lines, ""])
