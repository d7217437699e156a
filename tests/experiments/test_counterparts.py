"""Every figure of the four papers has a counterpart that is there, or a reason for none."""

import re

import pytest
import torch

import softorder as so
from experiments import catalogue, docs
from experiments.counterparts import DRAWN, FIGURES
from experiments.trials import RESULTS

NUMBERS = {"SOFT top-k": 7, "LapSum": 14, "difftopk": 3, "k-hot": 10}  # as the papers count


def test_no_figure_is_left_out():
    for paper, last in NUMBERS.items():
        assert [f.number for f in FIGURES if f.paper == paper] == list(range(1, last + 1))
    assert len(FIGURES) == sum(NUMBERS.values())


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f"{f.paper} {f.number}")
def test_a_counterpart_is_there(figure):
    assert figure.presets or figure.pages or figure.why
    page = docs.PAGE.read_text(encoding="utf-8")
    for name, preset in figure.presets:
        assert (RESULTS / name / f"{preset}.json").exists()
        assert f"\n### {name}, {preset}\n" in page  # where the link leads
    for other in figure.pages:
        text = (docs.PAGE.parent / other).read_text(encoding="utf-8")
        assert re.search(r"!\[[^\]]+\]\(figures/", text)
    assert f"- {figure.paper}, Figure {figure.number}, {figure.shows}: {figure}." in page


def test_results_are_behind_pictures_and_not_only_tables():
    """Curves and maps of a paper stand beside a picture: the preset's own, or another page's."""
    seen = set(DRAWN) | {("polynomial", "quick")}  # this one is on the page of the samplers
    without = [f for f in FIGURES if f.presets and not seen & set(f.presets)]
    assert [(f.paper, f.number) for f in without] == [("difftopk", 3)]  # four pairs of numbers


def test_pictures_are_drawn_by_their_experiment_and_shown_once():
    page = docs.PAGE.read_text(encoding="utf-8")
    for name, preset in DRAWN:
        experiment = catalogue.get(name)
        assert experiment.draw is not None
        assert preset in experiment.presets
        assert page.count(f"](figures/own_{name}_{preset}.png)") == 1


def test_a_picture_with_a_palette_looks_the_same(tmp_path):
    from matplotlib.figure import Figure
    from PIL import Image, ImageChops

    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1], [1, 0], color="C1")
    path = tmp_path / "x.png"
    figure.savefig(path)
    before, size = Image.open(path).convert("RGB"), path.stat().st_size
    docs._pack(path)
    after = Image.open(path).convert("RGB")
    assert max(high for _, high in ImageChops.difference(before, after).getextrema()) <= 48
    assert path.stat().st_size < size


@pytest.mark.parametrize("method", ["laplace", "logistic", "normal", "cauchy", "uniform"])
def test_of_two_scores_one_is_chosen_by_half_their_distance(method):
    """What is said beside Figure 4 of the k-hot paper: F((x - b)/τ) with b half way."""
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    p = so.soft_topk(torch.stack([x, -x], -1), 1, method=method, temperature=0.7)[:, 0]
    torch.testing.assert_close(p, so.densities.BUILT_IN[method].cdf(x / 0.7), rtol=0, atol=1e-14)
