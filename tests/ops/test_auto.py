"""temperature="auto": a stated softness, of a choice or of an order, in every call."""

import math

import pytest
import torch

import softorder as so

_DENSITIES = list(so.densities.BUILT_IN)


def _scores(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def _softness_of_ranks(scores, temperature, method):
    """The definition, by a regression."""
    h = so.hard.rank(scores)
    r = so.soft_rank(scores, method=method, temperature=temperature)
    h, r = (v - v.mean(-1, keepdim=True) for v in (h, r))
    return 1 - (h * r).sum(-1) / (h * h).sum(-1)


@pytest.mark.parametrize("method", [*_DENSITIES, "neuralsort"])
@pytest.mark.parametrize("softness", [0.05, 0.6])
def test_ranks_are_as_soft_as_stated(method, softness):
    scores = _scores(3, 12)
    tau = so.calibrate_temperature(scores, softness=softness, method=method)
    found = _softness_of_ranks(scores, tau, method)
    torch.testing.assert_close(found, torch.full_like(found, softness), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", _DENSITIES)
def test_the_softness_of_ranks_rises_from_0_to_1(method):
    scores = _scores(1, 9).round(decimals=1)  # ties, too
    tau = torch.logspace(-3, 4, 30, dtype=torch.float64)
    softness = _softness_of_ranks(scores.expand(30, -1), tau, method)
    assert (softness.diff() >= -1e-9).all()
    assert abs(softness[0]) < 1e-2
    assert softness[-1] > 0.95


def test_a_method_without_ranks_is_judged_by_its_permutation():
    scores = _scores(2, 6)
    tau = so.calibrate_temperature(scores, softness=0.2, method="network")
    P = so.soft_permutation(scores, method="network", temperature=tau)
    ranks = (torch.arange(1, 7).unsqueeze(-1) * P).sum(-2)
    h = so.hard.rank(scores) - 3.5
    torch.testing.assert_close(
        1 - (h * ranks).sum(-1) / (h * h).sum(-1), torch.full((2,), 0.2).double()
    )


def test_what_takes_no_part_or_is_certain_is_not_judged():
    scores = _scores(2, 7)
    padded = torch.cat([scores, torch.tensor([[-math.inf, math.inf, 5.0]] * 2)], -1)
    mask = torch.ones_like(padded, dtype=torch.bool)
    mask[:, -1] = False
    found = so.calibrate_temperature(padded, mask=mask)
    torch.testing.assert_close(found, so.calibrate_temperature(scores))
    equal = torch.tensor([[1.0, 1.0, 1.0], [math.nan, 0.0, 1.0]])
    found = so.calibrate_temperature(equal)
    assert found[0] == 1
    assert found[1].isnan()
    assert so.calibrate_temperature(torch.zeros(2, 0)).tolist() == [1, 1]


_OPERATORS = {
    "soft_topk": lambda x, **o: so.soft_topk(x, 3, **o),
    "log_soft_topk": lambda x, **o: so.log_soft_topk(x, 3, **o),
    "soft_rank": so.soft_rank,
    "soft_sort": so.soft_sort,
    "soft_permutation": so.soft_permutation,
    "soft_quantile": lambda x, **o: so.soft_quantile(x, 0.3, **o),
    "soft_median": so.soft_median,
    "fsum": lambda x, **o: so.fsum(x, torch.tensor([0.0, 1.0]).to(x), **o),
    "fsum_inverse": lambda x, **o: so.fsum_inverse(x, torch.tensor([1.0, 2.0]).to(x), **o),
}


@pytest.mark.parametrize("name", _OPERATORS)
def test_operators_take_the_temperature_of_their_scores(name):
    call, k = _OPERATORS[name], 3 if "topk" in name else None
    scores, mask = _scores(4, 10), _scores(4, 10, seed=1) < 1
    for softness, shared in ((0.1, False), (0.3, True)):
        for options in ({}, {"mask": mask}, {"dim": None}):
            found = {**options, "softness": softness, "shared": shared}
            tau = so.calibrate_temperature(scores, k, **found)
            expected = call(scores, temperature=tau, **options)
            auto = so.Auto(softness, shared)
            torch.testing.assert_close(
                call(scores, temperature=auto, **options), expected, rtol=1e-3, atol=1e-4
            )
    assert torch.equal(call(scores, temperature="auto"), call(scores, temperature=so.Auto()))


def test_the_scale_of_the_scores_does_not_matter():
    scores = _scores(4, 10)
    one, other = (so.soft_topk(x, 3, temperature="auto") for x in (scores, 1e4 * scores - 5))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


def test_rows_do_not_know_of_each_other_unless_they_share():
    scores = torch.stack([_scores(10), 100 * _scores(10, seed=1)])
    alone = so.soft_topk(scores[0], 3, temperature="auto")
    torch.testing.assert_close(so.soft_topk(scores, 3, temperature="auto")[0], alone)
    together = so.soft_topk(scores, 3, temperature=so.Auto(shared=True))
    assert (together[0] - alone).abs().max() > 0.1


def test_no_gradient_passes_through_the_temperature():
    scores = _scores(2, 8).requires_grad_()
    tau = so.calibrate_temperature(scores, 3)
    assert not tau.requires_grad
    by_auto, by_number = (
        torch.autograd.grad(so.soft_topk(scores, 3, temperature=t)[0, 0], scores)[0]
        for t in ("auto", tau)
    )
    torch.testing.assert_close(by_auto, by_number, rtol=1e-3, atol=1e-4)


def test_losses_take_the_temperature_of_their_scores():
    x, y = _scores(4, 10), torch.arange(4)
    target = so.hard.topk(x, 3)
    mask = torch.ones_like(x, dtype=torch.bool)
    mask[:, -1] = False
    cases = {
        3: [
            lambda t: so.losses.top_k_cross_entropy(x, y, [0.5, 0, 0.5, 0], temperature=t),
            lambda t: so.losses.fenchel_young(x, target, temperature=t),
            lambda t: so.losses.fenchel_young(x, target, 3, temperature=t),
        ],
        None: [
            lambda t: so.losses.permutation_cross_entropy(x, x.argsort().argsort(), temperature=t)
        ],
    }
    for k, losses in cases.items():
        for loss in losses:
            expected = loss(so.calibrate_temperature(x, k))
            torch.testing.assert_close(loss("auto"), expected, rtol=1e-3, atol=1e-4)
    hidden = torch.where(mask, target, 0.0)
    tau = so.calibrate_temperature(x, hidden.sum(-1), mask=mask)
    torch.testing.assert_close(
        so.losses.fenchel_young(x, target, temperature="auto", mask=mask),
        so.losses.fenchel_young(x, target, temperature=tau, mask=mask),
        rtol=1e-3,
        atol=1e-4,
    )


def test_a_compiled_graph_has_one_node_for_it():
    sizes = []

    def backend(graph, inputs):
        sizes.append(len(graph.graph.nodes))
        return graph

    scores = _scores(3, 20)
    for run in (
        lambda x: so.calibrate_temperature(x, 3),
        lambda x: so.calibrate_temperature(x, shared=True),
        lambda x: so.calibrate_temperature(x, 3, mask=x > -1, largest=False),
    ):
        torch.compiler.reset()
        compiled = torch.compile(run, backend=backend, fullgraph=True)
        torch.testing.assert_close(compiled(scores), run(scores))
    assert len(sizes) == 3
    assert max(sizes) < 20


@pytest.mark.slow
def test_compiles_to_machine_code():
    def run(x):
        return so.soft_topk(x, 3, temperature="auto"), so.soft_rank(x, temperature="auto")

    torch.compiler.reset()
    scores = _scores(3, 20)
    torch.testing.assert_close(torch.compile(run, fullgraph=True)(scores), run(scores))


def test_vmap_is_a_loop_over_rows():
    scores = _scores(3, 8)
    found = torch.func.vmap(lambda x: so.soft_topk(x, 3, temperature="auto"))(scores)
    torch.testing.assert_close(found, so.soft_topk(scores, 3, temperature="auto"))


def test_a_thousand_normal_scores():
    """What the documentation says of temperature 1."""
    scores = _scores(64, 1000)
    outside = 1 - so.soft_topk(scores, 10).topk(10).values.sum(-1).mean() / 10
    assert round(outside.item(), 2) == 0.91
    auto = so.soft_topk(scores, 10, temperature="auto")
    assert round(1 - auto.topk(10).values.sum(-1).mean().item() / 10, 3) == 0.099
