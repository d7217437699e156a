"""What is said of the figures follows from the figures."""

import doctest
import json
import random
import re
from importlib import import_module
from pathlib import Path

import pytest

import softorder as so
from experiments import catalogue, choosing, contest, docs, panels, ranking
from experiments import reading as sentences
from experiments.contest import Contest, by_first
from experiments.paper import Paper
from experiments.trials import RESULTS, Trials

KEPT = sorted(RESULTS.glob("*/*.json"))
LOSS = Contest("loss", "loss", digits=2)
SHARE = Contest("share", "accuracy", True, 1, 100, " %")
STRONG = r"beats|is better|are better|is worse|are worse|more than chance is"


def _trials(key="loss", **arms) -> Trials:
    """Arms by name, each with the values of its seeds."""
    trials = Trials("title", {})
    for arm, values in arms.items():
        for seed, value in enumerate(values):
            trials.records.append({"arm": arm, "seed": seed, key: value})
    return trials


def _paper(key="loss", **figures) -> Paper:
    printed = {arm: {key: value} for arm, value in figures.items()}
    return Paper("source", "setting", printed, {})


def _leader(contest=LOSS, key="loss", **arms) -> str:
    return sentences.leader(contest, contest.groups(_trials(key, **arms))[""])


# ---- sentences ---------------------------------------------------------------------------------


def test_beats_stands_where_all_seeds_say_so():
    said = _leader(a=[1.0, 1.1, 1.2, 1.05], b=[2.0, 2.11, 2.19, 2.06])
    assert said == "Least loss: a (1.09 ± 0.14); it beats b by 1.00."


def test_and_does_not_where_the_seeds_disagree():
    said = _leader(a=[1.0, 3.1, 1.2, 1.05], b=[2.0, 2.11, 2.19, 2.06])
    assert "it cannot be told apart from b" in said
    assert not re.search(STRONG, said)


def test_the_same_means_without_pairs_would_not_be_enough():
    """The seeds move both arms together: only the pairs show the difference."""
    a = [1.0, 5.0, 9.0, 3.0]
    paired_, crossed = [x + 0.1 + 0.01 * x for x in a], [x + 0.15 for x in reversed(a)]
    assert "beats b" in _leader(a=a, b=paired_)
    assert "cannot be told apart" in _leader(a=a, b=crossed)


@pytest.mark.parametrize(("seeds", "said"), [(1, "one seed is"), (2, "2 seeds are")])
def test_few_seeds_tell_nothing(seeds, said):
    text = _leader(a=[1.0, 1.0][:seeds], b=[9.0, 9.1][:seeds])
    assert f"then b (9.0{'0' if seeds == 1 else '5'}); {said} too few to tell." in text
    assert not re.search(STRONG, text)


def test_the_best_is_the_highest_where_higher_is_better():
    arms = {"a": [0.5, 0.51, 0.52], "b": [0.7, 0.712, 0.719]}
    assert _leader(SHARE, "share", **arms).startswith("Highest accuracy: b (71.0 ± 2.4 %)")
    assert "beats a by 20.0 points" in _leader(SHARE, "share", **arms)


def test_many_comparisons_make_the_test_stricter():
    """Beside twenty others the same two arms are not apart."""
    draw = random.Random(0)
    pair = {"a": [1.0, 1.1, 1.2], "b": [1.1, 1.21, 1.27]}
    crowd = {f"c{i}": [draw.gauss(1.4, 0.2) for _ in range(3)] for i in range(20)}
    assert "it beats b" in _leader(**pair)
    assert "it beats" not in _leader(**pair, **crowd)
    assert "cannot be told apart from any of the 21 others" in _leader(**pair, **crowd)


def test_the_best_in_truth_is_seldom_called_beaten():
    """Ten equal methods: the first is as good as any, and called beaten in 5 % of all cases at
    most. That 400 of them show more than 38 has a probability below 1e-4."""
    draw, beaten = random.Random(1), 0
    for _ in range(400):
        values = {f"m{i}": dict(enumerate(draw.gauss(0, 1) for _ in range(5))) for i in range(10)}
        best, others = contest.against_best(LOSS, values)
        beaten += best != "m0" and others["m0"].differ
    assert beaten <= 38


def test_and_one_that_is_worse_often_is():
    draw, beaten = random.Random(1), 0
    for _ in range(100):
        values = {f"m{i}": dict(enumerate(draw.gauss(0, 1) for _ in range(5))) for i in range(9)}
        values["bad"] = dict(enumerate(draw.gauss(9, 1) for _ in range(5)))
        _, others = contest.against_best(LOSS, values)
        beaten += others["bad"].differ
    assert beaten > 80


def _against(**arms) -> str:
    scores = SHARE.groups(_trials("share", **arms))[""]
    return sentences.against(SHARE, scores, "base", list(scores))


def test_others_are_better_or_worse_than_a_base():
    base = [0.5, 0.51, 0.52, 0.49]
    up, down = [x + 0.1 + x / 100 for x in base], [x - 0.2 - x / 100 for x in base]
    said = _against(base=base, up=up, down=down, same=[*base[:2], 0.55, 0.45], one=[0.9])
    assert "Accuracy, beside base (50.5 ± 2.1 %)" in said
    assert "up is better by 10.5 points" in said
    assert "down is worse by 20.5 points" in said
    assert "same cannot be told apart from it" in said
    assert "one differs by +40.0 points, but one seed is too few to tell" in said
    assert _against(base=base) == ""
    assert _against(up=up) == ""


def test_a_base_that_was_the_best_of_several_is_corrected_for_them():
    base = [1.0, 1.1, 1.2]
    scores = LOSS.groups(_trials(base=base, b=[1.1, 1.21, 1.27], c=[3.0, 1.0, 8.0]))[""]
    assert "b is worse" in sentences.against(LOSS, scores, "base", ["b"])
    many = {**scores, **{f"f{i}": {s: 2.0 + (i * s) % 7 for s in range(3)} for i in range(20)}}
    bases = [name for name in many if name != "b"]
    assert "cannot be told" in sentences.against(LOSS, many, "base", ["b"], bases)


def test_the_papers_order_is_counted_in_pairs():
    trials = _trials(a=[1.0], b=[2.0], c=[3.0])
    same = sentences.papers_order(LOSS, trials, _paper(a="1 ± 0.1", b="5", c="7.5"))
    assert same == "By the means all 3 pairs are in the paper's order."
    turned = sentences.papers_order(LOSS, trials, _paper(a="6", b="5", c="7.5"))
    assert "2 of 3 pairs are in the paper's order (τ = 0.33), but a before b; too few" in turned
    assert sentences.papers_order(LOSS, trials, _paper(d="6")) == ""


def test_a_turn_is_more_than_chance_only_if_the_seeds_say_so():
    paper = _paper(a="6", b="5")
    sure = _trials(a=[1.0, 1.1, 1.2], b=[2.0, 2.1, 2.25])
    unsure = _trials(a=[1.0, 1.1, 1.2], b=[2.0, 0.9, 1.25])
    assert sentences.papers_order(LOSS, sure, paper).endswith("more than chance is a before b.")
    assert sentences.papers_order(LOSS, unsure, paper).endswith("more than chance is not shown.")


def test_distances_from_the_paper():
    trials = _trials(a=[1.0, 3.0], b=[5.0])
    paper = _paper(a="1.0", b="3", c="9")
    assert (
        sentences.papers_ratio(LOSS, trials, paper)
        == "The loss is 1.67 (b) to 2.00 (a) times the paper's."
    )
    assert sentences.papers_gap(LOSS, trials, paper) == (
        "Our loss minus the paper's: from +1.00 (a) to +2.00 (b)."
    )
    assert sentences.papers_ratio(LOSS, trials, _paper(x="1")) == ""


def test_another_figure_of_ours_may_stand_beside_the_papers():
    trials, paper = _trials("least", a=[1.0]), _paper(a="0.5")
    assert sentences.papers_ratio(Contest("least", "least loss"), trials, paper) == ""
    said = sentences.papers_ratio(Contest("least", "least loss", figure="loss"), trials, paper)
    assert said == "The least loss is 2.00 times the paper's."


def test_groups_are_compared_apart():
    trials = _trials(**{"M, a": [1.0], "M, b": [2.0], "F, a": [4.0], "F, b": [3.0], "G, a": [0.0]})
    split = Contest("loss", "loss", split=by_first)
    first, second = sentences.leaders(split, trials)
    assert first.startswith("Least loss for M: a (1.00), then b")
    assert second.startswith("Least loss for F: b (3.00), then a")


def test_a_sweep_names_the_best_value_of_each_line():
    arms = {
        f"x, τ = {t}": [loss, loss + 0.1, loss + 0.21] for t, loss in ((0.1, 3), (1, 1), (10, 2))
    }
    trials = _trials(**arms)
    assert sentences.is_sweep(trials)
    assert not sentences.is_sweep(_trials(a=[1.0], b=[1.0], **{"x, τ = 1": [1.0]}))
    said = sentences.sweeps(LOSS, trials)
    assert said.startswith(
        "Best for loss: x τ = 1 (1.10 ± 0.26, not told apart from 0 of 2 others)"
    )


def test_a_curve_says_whether_it_still_moves():
    trials = Trials("title", {})
    for seed, end in enumerate((0.9, 0.5, 0.8)):
        trials.records.append({"arm": "a", "seed": seed, "loss": end, "curve": [2.0, 1.0, end]})
    assert sentences.still_moving(LOSS, trials) == (
        "In the last epoch the loss changed by -20.0 % in the median trial (-50.0 to -10.0 %)."
    )


def test_where_curves_begin_and_end_is_said_for_every_group():
    contest = Contest("share", "errors", False, 1, 100, " %", by_first)
    trials = Trials("title", {})
    for arm, ends in (("1, a", (0.5, 0.25)), ("1, b", (0.5, 0.75)), ("2, a", (0.1, 0.2))):
        for seed in range(2):
            curve = [ends[0] + 0.01 * seed, 9.0, ends[1] + 0.03 * seed]
            trials.add(arm, seed, {"share": 0.5, "curve": curve})
    trials.add("1, c", 0, {"share": 0.5})
    assert sentences.along(contest, trials, "curve", "1") == (
        "On the validation part, from the first point of the curve to the last for 1: "
        "errors 50.5 to 26.5 % with a and 50.5 to 76.5 % with b."
    )
    assert "10.5 to 21.5 % with a." in sentences.along(contest, trials, "curve", "2")
    assert sentences.along(contest, trials, "other") == ""


def test_rounding_is_no_difference():
    said = _leader(a=[0.0, 0.0, 0.0], b=[2e-15, 2e-15, 2e-15])
    assert "cannot be told apart" in said


@pytest.mark.parametrize(
    "name",
    [
        "contest",
        "reading",
        "root_finding.reading",
        "words",
        "statistics.paired",
        "statistics.ranks",
        "topk_attention.config",
        "topk_attention.experiment",
        "topk_classification.reading",
        "topk_sweeps.reading",
    ],
)
def test_examples_of_the_docstrings(name):
    assert doctest.testmod(import_module(f"experiments.{name}")).failed == 0


# ---- experiments -------------------------------------------------------------------------------


def test_what_a_variant_brings_is_said_beside_the_base():
    arms = {
        "n = 3, as quick": [0.70, 0.71, 0.72],
        "n = 3, more": [0.80, 0.81, 0.825],
        "n = 3, other": [0.72, 0.70, 0.71],
        "n = 3, once": [0.9],
    }
    trials = _trials("whole", **arms)
    trials.config = {"variants": ["as quick"], "methods": ["laplace"]}
    paper = _paper("whole", **{"n = 3, laplace": "93.1"})
    read = import_module("experiments.large_mnist_sort.reading").read
    assert read(trials, paper) == [
        "Beside as quick (71.0 ± 2.5 %) for n = 3: more than chance is +10.2 points by more; "
        "that it is more is not shown for +0.0 points by other; once: one seed is too few to tell.",
        "The best, once, is 3.1 points below the paper's.",
    ]


def test_a_temperature_at_an_end_of_those_that_were_tried_is_named():
    trials = Trials("title", {"factors": [1.0, 3.0, 10.0]})
    for arm, factor in (("laplace, share", 3.0), ("logistic, share", 10.0), ("normal, share", 1.0)):
        trials.add(arm, 0, {"accuracy": 0.5, "factor": factor})
    said = 'at an end of those that were tried for "logistic, share" and "normal, share".'
    assert _read("knn", trials).endswith(said)
    trials.config = {"factors": [1.0]}
    assert "those that were tried" not in _read("knn", trials)


def test_what_soft_neighbours_need_is_said_beside_the_base_and_cross_entropy():
    base, features = "as tuned before", "kNN on cross-entropy features"
    arms = {base: 0.30, "τ × 10": 0.40, "every image a query": 0.50, features: 0.45}
    trials = Trials("title", {"variants": list(arms)})
    for arm, value in arms.items():
        for seed, noise in enumerate((0.0, 0.001, 0.003)):
            own = value * (1 + noise)
            trials.add(arm, seed, {"accuracy": own, "agreement": 0.1 * own})
    said = _read("knn", trials)
    assert said.startswith(
        "Beside as tuned before (30.04 ± 0.11 %): more than chance is +20.03 points by every image "
        "a query and +10.01 points by τ × 10. Accuracy, beside kNN on cross-entropy features "
    )
    assert "every image a query is better by 5.01 points" in said
    assert "as tuned before and τ × 10 are worse by 5.01 to 15.02 points" in said
    assert "Cosine of two batches' gradients at the start, beside kNN on" in said


def test_what_reading_its_own_phones_adds_is_said_for_every_length():
    trials = Trials("title", {})
    for seed, errors in enumerate((0.10, 0.11, 0.12)):
        for size, added in (("1 word", 0.0), ("4 words", 0.05)):
            forced = {"phones": errors, "tuning": 1.0, "updates": 10, "forced": 0.09}
            soft = {"phones": errors - added, "tuning": 3.0, "updates": 10}
            trials.add(f"{size}, teacher forcing", seed, {**forced, "own": 0.09 + added})
            trials.add(f"{size}, soft beam, laplace", seed, soft)
    said = _read("beam_search", trials)
    assert "For 4 words: phone errors, beside teacher forcing (11.00 ± 2.48 %): " in said
    assert '"soft beam, laplace" is better by 5.00 points.' in said
    assert "An update through the search takes 3.0 times as long for 4 words." in said
    assert "9.00 ± 0.00 % of the phones are wrong after the right ones for 1 word" in said
    assert "for 4 words, and reading its own adds 5.00 ± 0.00 points." in said
    assert "gains over teacher forcing alone for 1 word, as the paper says, does not show" in said
    assert "gains over teacher forcing alone for 4 words, as the paper says, shows here" in said


def test_what_attention_chose_is_said():
    trials = Trials("title", {})
    for arm, choice in (("softmax", 3), ("top-k, soft", 0)):
        trials.add(arm, 0, {"bleu": 20.0, "choice": choice})
    assert (
        "Chosen on the validation part: for softmax τ = 0.5 at the start and 2 times the learning "
        'rate; for "top-k, soft" k = 2 and τ = 1 at the start.'
    ) in _read("topk_attention", trials)


def _read(name: str, trials: Trials) -> str:
    experiment = catalogue.get(name)
    return sentences.reading(experiment, Paper.of(experiment), trials)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_result_has_a_reading(kept):
    trials = Trials.read(kept)
    said = _read(kept.parent.name, trials)
    assert said.endswith(".")
    assert "nan" not in said
    assert "inf" not in said.replace("inference", "")
    if all(trials.seeds(arm) < contest.ENOUGH for arm in trials.arms):
        assert not re.search(STRONG, said)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_part_of_the_trials_has_one_too(kept):
    """Runs that are not finished: any arms, any seeds, one seed, none."""
    name, whole, draw = kept.parent.name, Trials.read(kept), random.Random(0)
    for _ in range(12):
        size = draw.choice([0, 1, 2, 5, len(whole.records) // 2])
        part = Trials(
            "title", whole.config, draw.sample(whole.records, min(size, len(whole.records)))
        )
        said = _read(name, part)
        assert said == "" or said.endswith(".")
    first = [record for record in whole.records if record["seed"] == 0]
    assert not re.search(STRONG, _read(name, Trials("title", whole.config, first)))
    renamed = [{**record, "arm": f"new {i}"} for i, record in enumerate(whole.records)]
    _read(name, Trials("title", whole.config, renamed))


@pytest.mark.parametrize("name", catalogue.names())
def test_no_reading_is_written_by_hand(name):
    folder = catalogue.get(name).folder
    assert "reading" not in json.loads((folder / "paper.json").read_text(encoding="utf-8"))
    assert callable(import_module(f"experiments.{name}.reading").read)
    assert sentences.contests(catalogue.get(name))
    code = (folder / "reading.py").read_text(encoding="utf-8")
    typed = re.sub(r"\{[^{}]*\}", "", code)  # what is inside of braces is computed
    typed = re.sub(r"(?s)\"\"\".*?\"\"\"", "", typed)
    assert not re.search(r"\"[^\"\n]*\d\.\d[^\"\n]*\"", typed), "a figure that is typed in"


def _learned(seeds: int, excess: float, end: float) -> Trials:
    trials = Trials("title", {})
    for seed in range(seeds):
        noise = 0.001 * (seed % 2)
        for k in (10, 50, 100):
            loss = 0.8 + abs(k - 50) / 100 + noise
            trials.add(f"fixed k = {k}", seed, {"penalised": loss, "k": k, "loss": 0.3})
        loss = 0.8 + excess + 0.7 * noise
        trials.add("learned, from k = 10", seed, {"penalised": loss, "k": end, "loss": 0.3})
    return trials


def test_learning_k_is_worse_equal_or_unclear_as_the_figures_say():
    assert "is worse by 0.0499" in _read("learn_k", _learned(5, 0.05, 51))
    assert "cannot be told apart" in _read("learn_k", _learned(5, 0.0, 51))
    assert "one seed is too few" in _read("learn_k", _learned(1, 0.05, 51))
    assert "+6.2 %" in _read("learn_k", _learned(1, 0.05, 51))
    assert "other of them, as the paper says, shows" in _read("learn_k", _learned(1, 0.05, 51))
    assert "says, does not show" in _read("learn_k", _learned(1, 0.05, 90))


def test_what_moves_iterations_is_the_interval_or_something_else():
    def said(near: int, far: int) -> str:
        trials = Trials("title", {"n": 10_000})
        for beyond, count in ((5, near), (18, far)):
            for seed, more in enumerate((0, 1, 2)):
                for method, halvings in (("bisection", 40), ("halley, zero", count + more)):
                    curve = [10.0 ** (1 - i / 2) for i in range(halvings)]
                    arm = f"{method}, up to max |x| + {beyond}"
                    figures = {"iterations": float(halvings), "curve": [*curve, 1e-9]}
                    trials.add(arm, seed, figures)
        return _read("root_finding", trials)

    assert "save bisection 26.00 iterations and the others 0.00." in said(5, 9)
    assert "have a standard deviation of up to 1.00. So the interval moves them more" in said(5, 9)
    assert "So the interval moves them less than the stopping rule or the batch." in said(5, 5)


def test_selection_says_which_curves_had_turned():
    trials = Trials("title", {})
    for seed, noise in enumerate((0.0, 0.02)):
        trials.add("M, a", seed, {"loss": 0.9, "curve": [0.9 + noise, 0.5, 0.6 + noise]})
        trials.add("M, b", seed, {"loss": 0.9, "curve": [0.9, 0.8, 0.7]})
    said = _read("feature_selection", trials)
    assert (
        'By the means over the seeds 1 of 2 curves had turned when it ended: "M, a" 0.5000 after '
        "epoch 2 of 3, +22.0 % at the end."
    ) in said
    trials.records = [record for record in trials.records if record["arm"] == "M, b"]
    assert "0 of 1 curves had turned when it ended." in _read("feature_selection", trials)


def test_what_all_pixels_come_to_stands_beside_the_papers_best_choice():
    trials = Trials("title", {"k": 50})
    for arm, least in (("MNIST, all pixels", 0.049), ("Fashion-MNIST, all pixels", 0.57)):
        trials.add(arm, 0, {"least": least, "loss": 1.0})
    assert _read("feature_selection", trials) == (
        "The least test loss of an epoch with all pixels is 0.0490 for MNIST, 0.51 times the "
        "paper's least with 50 and 0.5700 for Fashion-MNIST, 2.00 times the paper's least with 50. "
        "No choice of pixels is what is missing for Fashion-MNIST."
    )


def _descent(first: list[float], second: list[float]) -> str:
    trials = Trials("title", {"steps": 40, "every": 10})
    for arm, curve in (("πST", first), ("πST2", second)):
        for seed in range(3):
            trials.add(arm, seed, {"excess": curve[-1] + 0.001 * seed, "curve": curve})
    return _read("polynomial", trials)


def test_descent_is_read_from_its_curve():
    flat, down, falling = [5.0, 4.5, 4.5, 4.5], [5.0, 2.0, 0.06, 0.05], [5.0, 4.0, 3.0, 2.0]
    said = _descent(flat, down)
    assert "πST 90.0 % and πST2 1.0 %" in said
    assert "as the paper says, shows here" in said
    assert "does not show here" in _descent(down, flat)
    assert "πST2 40.0 % and falling" in _descent(flat, falling)


def test_mixtures_are_judged_by_their_pairs():
    def said(gain: float) -> str:
        trials = Trials("title", {"data": "made up"})
        for seed in range(5):
            for k, top in (
                ("5", 0.5),
                ("1 to 5", 0.5 + gain),
                ("1 and 5, ¼ and ¾", 0.5 + 2 * gain),
            ):
                noise = 0.001 * ((seed * 7 + len(k)) % 5)
                trials.add(f"laplace, k = {k}", seed, {"top1": top + noise, "top5": 0.9 + noise})
        return _read("topk_classification", trials)

    assert "beats k = 5 alone in 2 of 2 comparisons, loses in 0" in said(0.1)
    assert "beats k = 5 alone in 0 of 2 comparisons, loses in 2" in said(-0.1)
    assert "In top-5 accuracy a mixture of several k beats k = 5 alone in 0 of 2" in said(0.1)


def test_half_is_not_most():
    trials = Trials("title", {"data": "made up"})
    for seed in range(5):
        noise = 0.001 * (seed * 7 % 5)
        for method, gain in (("laplace", 0.1), ("logistic", -0.1)):
            for k, top in (("5", 0.5), ("1 to 5", 0.5 + gain + 0.01 * noise)):
                figures = {"top1": top + noise, "top5": top + noise}
                trials.add(f"{method}, k = {k}", seed, figures)
    said = _read("topk_classification", trials)
    assert "alone in 1 of 2 comparisons, loses in 1" in said
    assert "for most methods, as the paper says, does not show" in said


def test_bias_that_repetitions_cannot_show_is_none():
    def said(bias: float) -> str:
        trials = Trials("title", {"repetitions": 10_000})
        for arm, own in (("straight_through", bias), ("second_order", 0.1)):
            figures = {f"bias_{loss}": own for loss in ("linear", "quadratic", "curved")}
            figures |= {f"deviation_{loss}": 1.0 for loss in ("linear", "quadratic", "curved")}
            trials.add(arm, 0, figures)
        return _read("estimators", trials)

    assert "for a linear loss straight_through;" in said(0.009)
    assert "loss is linear, as the paper says, shows" in said(0.009)
    assert "for a linear loss none;" in said(0.011)
    assert "loss is linear, as the paper says, does not show" in said(0.011)


# ---- ranks -------------------------------------------------------------------------------------


def test_cases_are_the_seeds_that_all_methods_have():
    trials = _trials(a=[1.0, 2.0, 3.0], b=[2.0, 1.0], c=[3.0, 3.0, 3.0])
    assert ranking.of_contest(LOSS, trials).values == {"a": [1, 2], "b": [2, 1], "c": [3, 3]}


def test_diagrams_are_drawn(tmp_path):
    arms = {name: [i + 0.1 * ((7 * s + i) % 5) for s in range(12)] for i, name in enumerate("abcd")}
    case = ranking.of_contest(LOSS, _trials(**arms))
    ranking.draw([case, case], tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    (row,) = ranking.table([case]).rows
    assert row[:5] == ("loss", "4", "12 seeds", "a (1.0)", "d (4.0)")
    assert float(row[5]) < 0.001
    assert row[7] == "1"
    assert ranking.note([case]) == ""
    few = ranking.of_contest(LOSS, _trials(**{name: v[:5] for name, v in arms.items()}))
    assert "tell nothing here: it needs 8 cases" in ranking.note([few])
    assert "in 1 of 2" in ranking.note([few, case])


def test_presets_are_ranked_together():
    experiment = catalogue.get("beam_search")
    kept = {p: _trials("phones", a=[1.0, 2], b=[2.0, 3], c=[3.0, 4]) for p in ("quick", "medium")}
    assert ranking.across(experiment, {"quick": kept["quick"]}) == []
    kept["quick"].records += [{**r, "seed": 9} for r in kept["quick"].records if r["seed"] == 0]
    (found,) = ranking.across(experiment, kept)
    assert len(found.values["a"]) == 5


# ---- documents ---------------------------------------------------------------------------------


def _accuracies(preset):
    contest = sentences.contests(catalogue.get("knn"))[0]
    return contest, contest.groups(Trials.read(RESULTS / "knn" / f"{preset}.json"))[""]


def test_densities_are_alike_as_the_page_of_choosing_says():
    said = " ".join(Path("docs/choosing.md").read_text("utf-8").split())
    assert "densities cannot be told apart in [nearest neighbours on MNIST]" in said
    contest_, scores = _accuracies("mnist-calibrated")
    densities = {f"{name}, share": scores[f"{name}, share"] for name in so.densities.BUILT_IN}
    _, others = contest.against_best(contest_, densities)
    assert len(others) == 4
    assert not any(verdict.few or verdict.differ for verdict in others.values())


def test_temperatures_are_alike_as_the_page_of_top_k_says():
    said = " ".join(Path("docs/topk.md").read_text("utf-8").split())
    assert "no τ of `laplace` from 0.01 to 10 times the spread" in said
    contest_, scores = _accuracies("alpha")
    line = {arm: scores[arm] for arm in scores if arm.startswith("laplace, share, τ = ")}
    best, others = contest.against_best(contest_, line)
    alike = {best, *(arm for arm, verdict in others.items() if not verdict.differ)}
    wanted = {arm for arm in line if 0.01 <= float(arm.rpartition(" = ")[2]) <= 10}
    assert alike == wanted
    assert len(wanted) == 7


def test_which_method_when_is_made_of_the_results():
    assert choosing.SNIPPET.read_text(encoding="utf-8") == choosing.page(), (
        "run python -m experiments.docs"
    )
    assert '--8<-- "docs/snippets/choosing.md"' in Path("docs/choosing.md").read_text("utf-8")


def test_the_best_three_are_listed_with_p(tmp_path):
    trials = _trials(
        "phones", a=[0.1, 0.11, 0.12], b=[0.2, 0.212, 0.219], c=[0.15, 0.3, 0.1], d=[9.0]
    )
    for record in trials.records:
        record["tuning"] = 3.0 if record["arm"] == "a" else 40.0
    trials.write(tmp_path / "beam_search" / "quick.json")
    (found,) = choosing.comparisons(catalogue.get("beam_search"), tmp_path)
    rows = choosing.table([found]).rows
    assert [row[1] for row in rows] == ["a", "c", "b"]
    assert rows[0][2:] == ("11.00 ± 2.48 %", "", "", "3.0 s a trial")
    assert [row[4] for row in rows] == ["", "0.5", "0.25"]
    assert re.fullmatch(r"0\.\d+ \((0\.\d+|1)\)", rows[1][3])
    said = choosing.paragraph([found])
    assert "Best by the mean: a in 1 of 1." in said
    assert "Not beaten by the best in one comparison with enough seeds: a, c and d." in said
    assert "The quickest of these is a." in said


def test_curves_of_learning_are_drawn(tmp_path):
    trials = Trials("title", {})
    for arm, ends in (("M, a", 0.1), ("M, b", 0.2), ("F, a", 0.3)):
        for seed in range(2):
            trials.add(arm, seed, {"loss": ends, "curve": [1.0, 0.5, ends][seed:]})
    trials.add("F, b", 0, {"loss": 1.0})
    assert docs._curve(catalogue.get("knn"), "quick", trials) == []
    experiment = catalogue.get("feature_selection")
    (said,) = docs._curve(experiment, "quick", trials)
    assert said.endswith("(figures/curves_feature_selection_quick.png)")
    assert docs._curve(experiment, "quick", _trials(**{"M, a": [1.0]})) == []
    panels.learning(trials, experiment.learning, by_first, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_every_picture_of_the_page_is_there():
    pictures = re.findall(r"\]\((figures/(?:ranks|curves|own)_[^)]+)\)", docs.page())
    kinds = {picture.split("_")[0] for picture in pictures}
    assert kinds == {"figures/ranks", "figures/curves", "figures/own"}
    assert all((docs.PAGE.parent / picture).exists() for picture in pictures)
