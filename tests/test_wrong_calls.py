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
