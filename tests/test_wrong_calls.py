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
        lambda: so.nn.KHotGate(4, 2, temperature="auto"),
        lambda: so.losses.smooth_top_k(_X, torch.tensor([0, 1]), 1, temperature="auto"),
    ):
        with pytest.raises(
            TypeError, match="temperature must be a real number or a tensor, but got str"
        ):
            call()
