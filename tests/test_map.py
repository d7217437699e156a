"""The map of all operators: that it is complete, how patient it is, what it prints."""

import copy
import inspect
import json

import pytest
import torch

import softorder as so
from benchmarks.cases import Shape
from benchmarks.map import alternatives, entries, keeping, patience, results, suite
from benchmarks.map.measure import Skipped, Time
from benchmarks.rounds import Rounds
from softorder.relaxations import _base

_TINY = Shape(2, 8)


def test_every_public_operator_is_in_the_map():
    functions = {name for name in so.__all__ if callable(getattr(so, name))}
    mapped = {entry.operator for entry in entries.entries()}
    assert functions - mapped == set(entries.LEFT_OUT)


def test_every_loss_is_in_the_map():
    classes = {name for name in so.losses.__all__ if inspect.isclass(getattr(so.losses, name))}
    assert classes == set(entries.LOSSES)
    mapped = {entry.operator for entry in entries.entries()}
    assert classes - mapped == {"PermutationCrossEntropyLoss"}
    assert "permutation_cross_entropy" in mapped


def test_every_method_and_design_of_the_registries_is_in_the_map():
    mapped = {(entry.operator, entry.method) for entry in entries.entries()}
    assert {(row.operator, row.name) for row in so.methods()} <= mapped
    assert {("KHot.sample", row.name) for row in so.sampling.designs()} <= mapped


def test_a_new_method_appears_by_itself(monkeypatch):
    registry = dict(_base._registry)
    method = copy.copy(registry["soft_rank", "laplace"])
    method.name = "brand_new"
    registry["soft_rank", "brand_new"] = method
    monkeypatch.setattr(_base, "_registry", registry)
    mapped = {(entry.operator, entry.method) for entry in entries.entries()}
    assert ("soft_rank", "brand_new") in mapped
    assert ("NDCGLoss", "brand_new") in mapped


def test_every_operator_has_a_yardstick():
    assert {entry.operator for entry in entries.entries()} == set(alternatives.YARDSTICKS)


@pytest.mark.slow
@pytest.mark.parametrize("entry", entries.entries(), ids=lambda e: f"{e.operator}-{e.method}")
def test_every_entry_runs(entry):
    case = entries.case_of(_TINY)
    scores = entries.inputs_of(entry, case).requires_grad_(entry.gradient)
    out = entry.bind(case)(scores)
    assert not out.isnan().any()  # the logarithm of a 0 is fine
    if entry.gradient:
        (gradient,) = torch.autograd.grad(out.sum(), scores)
        assert gradient.shape == scores.shape


@pytest.mark.parametrize("operator", alternatives.YARDSTICKS)
def test_every_yardstick_runs(operator):
    yardstick, case = alternatives.YARDSTICKS[operator], entries.case_of(_TINY)
    inputs = yardstick.inputs(case).requires_grad_(yardstick.gradient)
    out = yardstick.bind(case)(inputs)
    assert out.isfinite().all()
    assert out.requires_grad == yardstick.gradient


@pytest.mark.parametrize("key", alternatives.peers(), ids="-".join)
def test_peers_compute_the_same(key):
    """Networks have other wires, and are compared where they are cold."""
    operator, method = key
    case = entries.case_of(Shape(3, 12))
    temperature = 1e-6 if method == "network" else 0.3
    options = {"method": method, "temperature": temperature}
    if operator == "soft_topk":
        options["k"] = case.k
    else:
        options["descending"] = True
    if operator == "soft_permutation":
        options["k"] = case.k
    case = type(case)(case.shape, case.k, temperature)
    scores = case.scores().double()
    theirs = alternatives.peers()[key].provider.bind(case)(scores.float())
    ours = getattr(so, operator)(scores, **options).float()
    if operator == "soft_sort" and theirs.dim() == 3:
        theirs = (theirs @ scores.float().unsqueeze(-1)).squeeze(-1)
        ours = ours[:, : case.k]
    theirs = theirs[:, : ours.shape[1]] if operator == "soft_permutation" else theirs
    torch.testing.assert_close(theirs.float(), ours, rtol=0, atol=1e-3)


# ---- what graphs keep --------------------------------------------------------------------------

_ROWS = Shape(4, 1_000)  # long rows, or what is kept once for each of them would count

#: What keeps too much, and why.
_TOO_MUCH = {
    "soft_sort": ("laplace", "uniform"),  # slopes, which the kernel's way back would take time for
    "permutation_cross_entropy": ("logistic", "normal", "cauchy", "uniform"),  # likewise
    "ListwiseCE": ("laplace",),  # the ends of all ranges, in int64
    "KHot.log_prob": ("pareto", "pareto_adjusted", "pareto_corrected"),  # float64, fits
}
_BY_PLANS = ("sinkhorn", "sinkhorn_sort", "sorted_soft")  # a row of one for each place


def _measured(entry):
    """Not matrices and plans, for which the map has no patience at the size of its table."""
    matrices = entry.square or "²" in entry.cost or "³" in entry.cost
    return entry.gradient and not matrices and entry.method not in _BY_PLANS


_KEEPING = [entry for entry in entries.entries() if _measured(entry)]


@pytest.mark.parametrize("entry", _KEEPING, ids=lambda e: f"{e.operator}-{e.method}")
def test_nothing_keeps_more_than_twice_its_scores_beyond_what_it_needs(entry):
    kept = keeping.kept(entry, _ROWS)
    assert kept.saved > 0
    assert kept.too_much == (entry.method in _TOO_MUCH.get(entry.operator, ()))


# ---- patience ----------------------------------------------------------------------------------


def _after(shape, first, usual=None, section="forward", builds=False):
    found = patience.Patience(limit=0.5)
    usual = first if usual is None else usual
    found.note("x", patience.Taken(section, shape, 1, first, usual, builds))
    return found


def test_after_its_time_nothing_is_tried():
    anything = "x", "forward", "O(n)", Shape(1, 16)
    assert patience.Patience(budget=60.0).objection(*anything) is None
    assert "over" in patience.Patience(budget=0.0).objection(*anything)


@pytest.mark.parametrize(
    ("cost", "first", "usual", "builds", "tried"),
    [
        ("O(n)", 0.05, 0.05, False, True),
        ("O(n²)", 0.1, 0.1, False, False),  # a hundred times as much
        ("O(n)", 0.4, 0.05, True, False),  # it was built, and that grows with n
        ("O(n)", 0.4, 0.05, False, True),  # only loaded, which happens once
        ("O(n), O(n²) for all", 0.01, 0.01, False, True),
    ],
)
def test_the_declared_cost_says_what_is_hopeless(cost, first, usual, builds, tried):
    known = _after(Shape(100, 1_000), first, usual, builds=builds)
    objection = known.objection("x", "forward", cost, Shape(100, 10_000))
    assert (objection is None) == tried
    assert known.objection("y", "forward", cost, Shape(100, 10_000)) is None


def test_what_was_too_slow_is_not_tried_at_larger_sizes():
    known = _after(Shape(100, 100), 1.5)
    assert "100×100 took 1.5 s forward" in known.objection("x", "forward", "O(n)", Shape(100, 101))
    assert known.objection("x", "forward", "O(n)", Shape(100, 50)) is None
    assert known.objection("x", "backward", "O(n)", Shape(100, 100)) is not None


def test_small_sizes_say_nothing():
    assert _after(Shape(1, 16), 0.9).objection("x", "forward", "O(n³)", Shape(1, 10**6)) is None


def test_a_slow_gradient_does_not_stop_the_forward_pass():
    known = _after(Shape(100, 100), 1.5, section="backward")
    assert known.objection("x", "forward", "O(n)", Shape(100, 200)) is None


# ---- what it prints ----------------------------------------------------------------------------


def _time(provider, seconds, section="forward", operator="soft_topk"):
    timing = Rounds(seconds, seconds, 1, (seconds,))
    return Time(operator, section, Shape(2, 100), provider, timing)


def test_the_worst_ratio_comes_first(tmp_path):
    found = results.Map(alternatives.peers())
    found.times += [_time("torch.softmax", 2e-7), _time("softorder laplace", 1e-6)]
    found.times += [_time("softorder uniform", 2e-6), _time("LapSum closed form", 4e-6)]
    found.times.append(_time("softorder normal", 1e-6, "backward"))  # no yardstick: no cell
    found.skipped.append(
        Skipped(
            "soft_topk", "backward", Shape(2, 100), "softorder cauchy", "the first call took 9 s"
        )
    )
    first, second = results.table(found.cells()).rows
    assert list(first[:8]) == [
        *("soft_topk", "uniform", "forward", "2×100"),
        *("10", "torch.softmax", "1", "10"),
    ]
    assert list(second[-3:]) == ["LapSum closed form", "20", "0.25"]
    written = {path.name for path in found.write(tmp_path)}
    assert written == {"map.json", "map.md", "map.png"}
    kept = json.loads((tmp_path / "map.json").read_text())
    assert len(kept["cells"]) == 2
    assert kept["timings"][0]["rounds"] == [2e-7]
    assert "the first call took 9 s" in (tmp_path / "map.md").read_text()


@pytest.mark.parametrize(("saved", "marked"), [(4 * 300, False), (4 * 300 + 65 * 2, True)])
def test_what_keeps_more_than_twice_its_input_is_marked(saved, marked):
    kept = keeping.Kept("soft_rank", "m", Shape(2, 50), None, saved, 1, "the scores")
    assert kept.too_much == marked
    assert ("keeps too much" in keeping.kept_table([kept]).text()) == marked


def test_what_formulas_need():
    def needed(operator, method):
        entry = next(e for e in entries.entries() if (e.operator, e.method) == (operator, method))
        return keeping.needs(entry, Shape(4, 1_000))[0]

    assert needed("soft_topk", "laplace") == 1
    assert needed("soft_permutation", "laplace") == 5
    assert needed("soft_topk", "softsort") == 5
    assert needed("KHot.sample", "pareto") == 0


def test_the_suite_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(suite, "SHAPES", (Shape(2, 8), Shape(2, 16)))
    monkeypatch.setattr(suite, "QUICK", (Shape(2, 8),))
    monkeypatch.setattr(keeping, "SHAPE", Shape(4, 100))
    monkeypatch.setattr(keeping.measure, "__defaults__", (Shape(4, 100),))
    found = suite.run(True, ["soft_topk", "laplace", "uniform"], 1e-4, tmp_path)
    assert {cell.method for cell in found.cells()} == {"laplace", "uniform"}
    assert {cell.section for cell in found.cells()} == {"forward", "backward"}
    assert {kept.method for kept in found.kept} == {"laplace", "uniform"}
    printed = capsys.readouterr().out
    assert "torch.softmax" in printed
    assert "4 cells" in printed
