"""What the page computes, shows and writes as Python is what the library computes."""

import json
import random

import pytest
import torch

import softorder as so

DENSITIES = tuple(so.densities.BUILT_IN)

# Shows every state, and tells what the page has computed and what can be read from it.
_SHOW = """(hashes => JSON.stringify(hashes.map(hash => {
  Playground.restore(hash);
  const all = selector => [...document.querySelectorAll(selector)];
  return {
    ...Playground.numbers(),
    problems: document.getElementById("problems").hidden ? "" : "there are some",
    python: document.getElementById("python").textContent,
    shownSoftness: document.getElementById("softness").textContent,
    table: all("#table tr").map(row => [...row.cells].slice(2).map(cell => cell.textContent)),
    heights: all("#weights .dot").map(dot => (210 - dot.cy.baseVal.value) / 180),
  };
}), (key, value) => Math.abs(value) === Infinity ? String(value) : value))"""


def _state(rng, density):
    n = rng.randint(1, 30)
    scores = [max(-4.0, min(4.0, rng.gauss(0, 1.2))) for _ in range(n)]
    if rng.random() < 0.3:  # ties
        scores = [rng.choice(scores[: n // 2 + 1]) for _ in scores]
    k = rng.choice(
        [rng.uniform(0, n), rng.uniform(0, n), rng.randint(0, n), 0, n, rng.random() / 99]
    )
    return {
        "scores": scores,
        "k": k,
        "temperature": 10 ** rng.uniform(-2, 1),
        "density": density,
        "selected": rng.randrange(n),
    }


def link(state):
    scores = ",".join(map(repr, state["scores"]))
    return (
        f"#x={scores}&k={state['k']!r}&t={state['temperature']!r}"
        f"&f={state['density']}&i={state['selected']}"
    )


def show(page, states):
    return json.loads(page.evaluate(f"{_SHOW}({json.dumps([link(s) for s in states])})"))


def _library(state):
    x = torch.tensor(state["scores"], dtype=torch.float64, requires_grad=True)
    k = float(state["k"])
    options = {"method": state["density"], "temperature": state["temperature"]}
    p = so.soft_topk(x, k, **options)
    (gradient,) = torch.autograd.grad(p[state["selected"]], x)
    x, p = x.detach(), p.detach()
    # Σ F((x - b)/τ) = k, with -x for small k: Σ F((-b - (-x))/τ) = k
    threshold = -so.fsum_inverse(-x, torch.tensor([k], dtype=torch.float64), **options)
    return {
        "p": p,
        "threshold": threshold.item(),
        "gradient": gradient,
        "ranks": so.soft_rank(x, **options),
        "permutation": so.soft_permutation(x, **options),
        "softness": _softness(x, p, k),
    }


def _softness(x, p, k):
    """By the formula of so.calibrate_temperature; None for what it calls decided."""
    hard = so.hard.topk(x, k)
    most = (hard * (hard - k / len(x))).sum()
    return (hard * (hard - p)).sum().item() / most.item() if most > 1e-9 * k else None


def _close(found, expected, tolerance=1e-9):
    found, expected = (torch.as_tensor(v, dtype=torch.float64) for v in (found, expected))
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_all_densities_can_be_chosen(playground):
    shown = playground.evaluate("[...document.getElementsByName('density')].map(e => e.value)")
    assert shown == list(so.densities.BUILT_IN)


def test_200_random_states(playground):
    rng = random.Random(20)
    states = [_state(rng, DENSITIES[i % 5]) for i in range(200)]
    for state, page in zip(states, show(playground, states), strict=True):
        assert page["state"] == state
        assert page["problems"] == ""
        library = _library(state)
        for name in ("p", "gradient", "ranks", "permutation"):
            _close(page[name], library[name])
        _close(float(page["threshold"]), library["threshold"])
        assert (page["softness"] is None) == (library["softness"] is None)
        if page["softness"] is not None:
            _close(page["softness"], library["softness"])
        _check_what_is_shown(page)


def _check_what_is_shown(page):
    _close(page["heights"], page["p"], 1e-6)
    for name, column in (("p", 0), ("gradient", 1), ("ranks", 2)):
        shown = [float(row[column].replace("−", "-")) for row in page["table"]]
        _close(shown, page[name], 5.01e-5)
    softness = page["shownSoftness"]
    if page["softness"] is None:
        assert softness == "–"
    else:
        assert float(softness.removesuffix(" %")) == pytest.approx(
            100 * page["softness"], abs=0.051
        )


def test_softness_is_that_of_calibrate_temperature(playground):
    rng = random.Random(21)
    states = [_state(rng, DENSITIES[i % 5]) for i in range(60)]
    checked = set()
    for state, page in zip(states, show(playground, states), strict=True):
        if page["softness"] is None or not 0.01 < page["softness"] < 0.9:
            continue
        x = torch.tensor(state["scores"], dtype=torch.float64)
        options = {"softness": page["softness"], "method": state["density"]}
        found = so.calibrate_temperature(x, state["k"], **options).item()
        assert found == pytest.approx(state["temperature"], rel=1e-6)
        checked.add(state["density"])
    assert checked == set(DENSITIES)


def test_its_python_gives_the_same_numbers(playground):
    rng = random.Random(22)
    states = [_state(rng, density) for density in DENSITIES]
    for page in show(playground, states):
        names = {}
        exec(page["python"], names)
        _close(page["p"], names["p"])
        _close(page["ranks"], names["ranks"])
        _close(page["permutation"], names["P"])


# --- where a choice has to be made ----------------------------------------------------------------


def _all_densities(scores, k, temperature):
    state = {"scores": scores, "k": k, "temperature": temperature, "selected": 0}
    return [{**state, "density": density} for density in DENSITIES]


def test_nothing_and_everything(playground):
    states = _all_densities([1.0, -1.0, 0.5], 0, 0.5) + _all_densities([1.0, -1.0, 0.5], 3, 0.5)
    for page in show(playground, states):
        chosen = 1.0 if page["state"]["k"] else 0.0
        assert page["p"] == [chosen] * 3
        assert page["gradient"] == [0.0] * 3
        assert float(page["threshold"]) == (-float("inf") if chosen else float("inf"))
        assert page["softness"] is None


def test_far_apart_scores_have_their_threshold_in_the_middle(playground):
    """As in the library, also where FSum is flat to the last digit."""
    for page in show(playground, _all_densities([4.0, -4.0, 3.0], 2, 0.01)):
        _close(float(page["threshold"]), _library(page["state"])["threshold"])
        if page["state"]["density"] != "cauchy":
            _close(float(page["threshold"]), -0.5, 1e-3)


def test_equal_scores_share(playground):
    for page in show(playground, _all_densities([0.7] * 4, 1, 0.2)):
        _close(page["p"], [0.25] * 4)
        _close(page["ranks"], [2.5] * 4)
        _close(page["permutation"], [[0.25] * 4] * 4)
        assert page["softness"] is None
