"""Wrong calls are refused in words: the argument, what was given, what is allowed."""

import pytest
import torch

import softorder as so

_X = torch.tensor([[3.0, 1.0, 2.0], [0.0, 1.0, -1.0]])


def _flag(name, given):
    return TypeError, f"{name} must be True or False, but got {given}"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: so.soft_topk(_X, 2, largest="False"), _flag("largest", "str")),
        (lambda: so.log_soft_topk(_X, 2, largest=None), _flag("largest", "NoneType")),
        (lambda: so.soft_topk(_X, 2, dim=None, largest=1), _flag("largest", "int")),
        (lambda: so.hard.topk(_X, 2, largest="no"), _flag("largest", "str")),
        (lambda: so.calibrate_temperature(_X, 2, largest="no"), _flag("largest", "str")),
        (lambda: so.calibrate_temperature(_X, 2, shared=1), _flag("shared", "int")),
        (lambda: so.nn.SoftTopK(2, largest="no"), _flag("largest", "str")),
        (lambda: so.nn.SoftTopK(2, log="no"), _flag("log", "str")),
        (lambda: so.nn.SoftRank(descending="no"), _flag("descending", "str")),
        (lambda: so.nn.SoftQuantile(0.5, keepdim=1), _flag("keepdim", "int")),
        (
            lambda: so.nn.SoftSort(learnable_temperature="no"),
            _flag("learnable_temperature", "str"),
        ),
        (lambda: so.soft_topk(_X, 2, hard=1), _flag("hard", "int")),
        (lambda: so.soft_rank(_X, hard="yes"), _flag("hard", "str")),
        (lambda: so.soft_sort(_X, hard=None), _flag("hard", "NoneType")),
        (lambda: so.soft_permutation(_X, hard=1), _flag("hard", "int")),
        (lambda: so.soft_median(_X, hard=1), _flag("hard", "int")),
        (lambda: so.nn.SoftSort(hard=1), _flag("hard", "int")),
        (lambda: so.nn.SoftRank(hard_inference=1), _flag("hard_inference", "int")),
        (lambda: so.nn.SoftTopK(2, learnable_k="no"), _flag("learnable_k", "str")),
        (lambda: so.Auto(shared=1), _flag("shared", "int")),
    ],
)
def test_a_flag_is_true_or_false(call, error):
    with pytest.raises(error[0], match=error[1]):
        call()


@pytest.mark.parametrize("operator", [so.soft_rank, so.soft_sort, so.soft_permutation])
@pytest.mark.parametrize("law", [so.densities.Laplace, so.Sinkhorn])
def test_a_class_is_not_a_method(operator, law):
    name = law.__name__
    with pytest.raises(
        TypeError, match=rf"method must be an object, {name}\(\), but got the class"
    ):
        operator(_X, method=law)


class _Shifted:
    def cdf(self, u):
        return torch.sigmoid(u - 1)

    def pdf(self, u):
        return torch.sigmoid(u - 1) * torch.sigmoid(1 - u)


class _Lopsided(_Shifted):
    def cdf(self, u):
        return torch.sigmoid(u)


@pytest.mark.parametrize(
    ("law", "why"),
    [(_Shifted(), r"with cdf\(-u\) = 1 - cdf\(u\)"), (_Lopsided(), r"with pdf\(-u\) = pdf\(u\)")],
)
def test_a_density_that_is_not_even_is_refused(law, why):
    for _ in range(2):  # the second time, too
        with pytest.raises(ValueError, match=f"method must be an even density, {why}"):
            so.soft_topk(_X, 2, method=law)


def test_an_even_density_is_asked_once():
    class Counted(_Lopsided):
        calls = 0

        def cdf(self, u):
            Counted.calls += u.dtype == torch.float64 and u.shape == (3,)
            return super().cdf(u)

        def pdf(self, u):
            return torch.sigmoid(u) * torch.sigmoid(-u)

    law = Counted()
    for _ in range(3):
        so.soft_topk(_X[:, :2], 1, method=law)
    assert Counted.calls == 2  # at u and at -u


@pytest.mark.parametrize("name", ["k", "temperature", "mask"])
def test_a_tensor_elsewhere_is_named(name):
    values = {"k": 2, "temperature": 1.0, "mask": None}
    values[name] = torch.ones(
        (2, 3) if name == "mask" else 2, dtype=torch.bool if name == "mask" else None, device="meta"
    )
    with pytest.raises(ValueError, match=f"{name} must be on the device of scores, cpu, but got"):
        so.soft_topk(_X, **values)


_LAW = so.distributions.KHot(2, logits=torch.tensor([1.0, 0.0, -1.0]))
_ESTIMATORS = [getattr(so.estimators, name) for name in so.estimators.__all__ if name != "find"]


@pytest.mark.parametrize(
    "call",
    [
        lambda n: _LAW.sample(n),
        lambda n: _LAW.rsample(n),
        lambda n: so.sampling.sample(torch.tensor([0.5, 0.5]), sample_shape=n),
        lambda n: so.perturb(_X, n),
        lambda n: so.gumbel_sinkhorn(torch.eye(3), sample_shape=n),
        lambda n: so.nn.KHotGate(3, 2).mask(n),
        *(lambda n, draw=draw: draw(_LAW, lambda x: x[..., 0], n) for draw in _ESTIMATORS),
    ],
)
def test_a_number_of_draws_is_a_shape(call):
    with pytest.raises(TypeError, match=r"sample_shape must be a tuple of ints, such as \(100,\)"):
        call(100)
    with pytest.raises(ValueError, match="sample_shape must hold ints >= 0, but got -1"):
        call((-1,))
    with pytest.raises(TypeError, match="sample_shape must hold ints, but got float"):
        call((2.0,))


@pytest.mark.parametrize("estimator", _ESTIMATORS)
def test_a_shape_is_no_loss(estimator):
    with pytest.raises(TypeError, match=r"loss .*but got tuple"):
        estimator(_LAW, (100,))


def test_a_target_is_a_permutation():
    loss = so.losses.permutation_cross_entropy
    twice = torch.tensor([[2, 0, 1], [0, 2, 2]])
    for dim, scores, target in ((-1, _X, twice), (0, _X.T, twice.T)):
        with pytest.raises(ValueError, match=r"must be a permutation.*the place 2 for 2 scores"):
            loss(scores, target, dim=dim)
    # what is ignored, or takes no part, has no place
    absent = torch.tensor([[True, True, True], [True, True, False]])
    assert loss(_X, torch.tensor([[2, 0, 1], [0, 1, 1]]), mask=absent).isfinite()
    assert loss(_X, torch.tensor([[2, 0, 1], [9, 2, 9]]), ignore_index=9).isfinite()


_META = {"device": "meta"}


@pytest.mark.parametrize(
    ("call", "name", "of"),
    [
        (lambda: so.soft_quantile(_X, torch.ones(1, **_META)), "q", "scores"),
        (lambda: so.fsum(_X, torch.ones(2, **_META)), "points", "scores"),
        (lambda: so.fsum_inverse(_X, torch.ones(2, **_META)), "levels", "scores"),
        (lambda: so.laplace_sum(_X, torch.ones(2, 3, **_META)), "targets", "sources"),
        (
            lambda: so.losses.NDCGLoss(2)(_X, torch.ones(2, 3, **_META)),
            "relevance",
            "scores",
        ),
        (
            lambda: so.losses.top_k_hinge(_X, torch.ones(2, **_META).long(), 2),
            "target",
            "scores",
        ),
        (
            lambda: so.losses.permutation_cross_entropy(_X, torch.ones(2, 3, **_META).long()),
            "target",
            "scores",
        ),
        (
            lambda: so.nn.functional.topk_attention(_X, _X, torch.ones(2, 3, **_META), 1),
            "value",
            "query",
        ),
        (
            lambda: so.nn.functional.nearest_neighbours(_X, torch.ones(2, 3, **_META), 1),
            "templates",
            "queries",
        ),
        (lambda: so.nn.KHotGate(None, 1)(torch.ones(2, 3, **_META), _X), "x", "logits"),
        (lambda: _LAW.log_prob(torch.ones(3, **_META)), "value", "logits"),
    ],
)
def test_another_device_is_named(call, name, of):
    with pytest.raises(ValueError, match=f"{name} must be on the device of {of}, cpu, but got"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: so.soft_rank(x),
        lambda x: so.hard.topk(x, 2),
        lambda x: so.losses.fenchel_young(torch.eye(3), x),
        lambda x: so.distributions.KHot(2, logits=x),
        lambda x: so.nn.KHotGate(3, 1)(x),
        lambda x: so.nn.functional.topk_attention(x, x, x, 1),
    ],
)
def test_sparse_tensors_are_refused(call):
    with pytest.raises(TypeError, match="must be a dense tensor, but got one of layout sparse_coo"):
        call(torch.eye(3).to_sparse())


def test_a_class_is_no_density():
    for call in (
        lambda law: so.losses.fenchel_young(_X, torch.eye(3)[:2], method=law),
        lambda law: so.distributions.KHot(2, logits=_X, method=law),
        lambda law: so.nn.KHotGate(3, 2, method=law),
    ):
        with pytest.raises(TypeError, match=r"method must be an object, Laplace\(\)"):
            call(so.densities.Laplace)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: so.soft_topk(_X, 2, temperature="warm"),
            "temperature must be a number, a tensor,",
        ),
        (lambda: so.soft_sort(_X, temperature="warm"), r"'auto' or so.Auto\(...\), but got 'warm'"),
        (lambda: so.nn.SoftRank(temperature="warm"), "but got 'warm'"),
        (lambda: so.Auto(1.0), "softness must be between 0 and 1, both excluded, but got 1.0"),
        (lambda: so.nn.SoftTopK(2, log=True, hard=True), "hard must be False with log=True"),
        (lambda: so.nn.SoftTopK(0, learnable_k=True), "k must be finite and > 0, but got 0"),
        (lambda: so.nn.SoftTopK(3, learnable_k=True)(_X), "between 0 and 3, the number of scores,"),
        (lambda: so.soft_sort(_X, dim=(0, 0)), "dim must name different axes"),
        (
            lambda: so.soft_permutation(_X, dim=(0, 2)),
            "dim must name different axes between -2 and 1",
        ),
        (
            lambda: so.calibrate_temperature(_X, method="renormalized_sigmoid"),
            "method must be one of",
        ),
    ],
)
def test_new_arguments_are_judged(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_auto_where_nobody_finds_it_is_refused():
    for call in (
        lambda: so.perturbed_topk(_X, 2, temperature="auto"),
        lambda: so.sinkhorn(torch.zeros(2, 2), temperature="auto"),
        lambda: so.losses.smooth_top_k(_X, torch.tensor([0, 1]), 1, temperature="auto"),
    ):
        with pytest.raises(
            TypeError, match="temperature must be a real number or a tensor, but got str"
        ):
            call()
