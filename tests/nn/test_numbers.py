"""Every number of a module goes with it: `.to`, state dicts, copies, pickles, assignment."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

import softorder as so

_BEAMS = {"start": 0, "end": 0, "max_length": 5}
#: how a module of each class is made, with tensors for numbers where it takes them
_MADE = {
    so.nn.SoftTopK: lambda t: so.nn.SoftTopK(t[0], temperature=t[1]),
    so.nn.SoftRank: lambda t: so.nn.SoftRank(temperature=t[1]),
    so.nn.SoftSort: lambda t: so.nn.SoftSort(temperature=t[1]),
    so.nn.SoftPermutation: lambda t: so.nn.SoftPermutation(k=2, temperature=t[1]),
    so.nn.SoftQuantile: lambda t: so.nn.SoftQuantile(t[0] / 4, temperature=t[1]),
    so.nn.SoftKNN: lambda t: so.nn.SoftKNN(nn.Linear(2, 2), 3, temperature=t[1]),
    so.nn.TopKAttention: lambda t: so.nn.TopKAttention(4, 2, t[0], temperature=t[1]),
    so.nn.BeamSearch: lambda t: so.nn.BeamSearch(2, **_BEAMS),
    so.nn.SoftBeamSearch: lambda t: so.nn.SoftBeamSearch(2, **_BEAMS, temperature=t[1]),
    so.nn.TopKActivation: lambda t: so.nn.TopKActivation(2, temperature=t[1]),
    so.nn.BatchTopK: lambda t: so.nn.BatchTopK(5, 2, temperature=t[1]),
    so.nn.FeatureUse: lambda t: so.nn.FeatureUse(5),
    so.nn.TopKRouter: lambda t: so.nn.TopKRouter(4, 3, 2, capacity=1.5, temperature=t[1]),
    so.nn.TokenSelection: lambda t: so.nn.TokenSelection(4, 2, temperature=t[1]),
    so.nn.TopKMask: lambda t: so.nn.TopKMask(2, group=4, temperature=t[1]),
    so.nn.KHotGate: lambda t: so.nn.KHotGate(None, 2.0, temperature=t[1]),
    so.nn.KHotHead: lambda t: so.nn.KHotHead(3, 5, 2, temperature=t[1]),
    so.losses.FenchelYoungLoss: lambda t: so.losses.FenchelYoungLoss(t[0], temperature=t[1]),
    so.losses.ApproxNDCGLoss: lambda t: so.losses.ApproxNDCGLoss(3, temperature=t[1]),
    so.losses.LambdaLoss: lambda t: so.losses.LambdaLoss(k=3, mu=2.0, temperature=t[1]),
    so.losses.ListMLELoss: lambda t: so.losses.ListMLELoss(3, temperature=t[1]),
    so.losses.ListNetLoss: lambda t: so.losses.ListNetLoss(temperature=t[1]),
    so.losses.NeuralNDCGLoss: lambda t: so.losses.NeuralNDCGLoss(3, temperature=t[1]),
    so.losses.PairwiseLoss: lambda t: so.losses.PairwiseLoss(temperature=t[1]),
    so.losses.SmoothAPLoss: lambda t: so.losses.SmoothAPLoss(temperature=t[1]),
    so.losses.SmoothRecallLoss: lambda t: so.losses.SmoothRecallLoss(3, temperature=t[1]),
    so.losses.ListwiseCE: lambda t: so.losses.ListwiseCE(temperature=t[1]),
    so.losses.MRRLoss: lambda t: so.losses.MRRLoss(3, temperature=t[1]),
    so.losses.MultiKLoss: lambda t: so.losses.MultiKLoss((2, 3), temperature=t[1]),
    so.losses.NDCGLoss: lambda t: so.losses.NDCGLoss(3, temperature=t[1]),
    so.losses.PermutationCrossEntropyLoss: lambda t: so.losses.PermutationCrossEntropyLoss(
        temperature=t[1]
    ),
    so.losses.PerturbedFenchelYoungLoss: lambda t: so.losses.PerturbedFenchelYoungLoss(
        2, temperature=t[1]
    ),
    so.losses.PrecisionAtK: lambda t: so.losses.PrecisionAtK(3, temperature=t[1]),
    so.losses.QuantileLoss: lambda t: so.losses.QuantileLoss(0.5, temperature=t[1]),
    so.losses.RankHuberLoss: lambda t: so.losses.RankHuberLoss(0.5, temperature=t[1]),
    so.losses.RecallAtK: lambda t: so.losses.RecallAtK(3, temperature=t[1]),
    so.losses.SmoothTopKLoss: lambda t: so.losses.SmoothTopKLoss(3, temperature=t[1]),
    so.losses.SpearmanLoss: lambda t: so.losses.SpearmanLoss(temperature=t[1]),
    so.losses.TopKCrossEntropyLoss: lambda t: so.losses.TopKCrossEntropyLoss(
        t[1] / t[1].sum() if isinstance(t[1], torch.Tensor) else [0.5, 0.5], temperature=t[1]
    ),
    so.losses.TopKEntropyLoss: lambda t: so.losses.TopKEntropyLoss(3),
    so.losses.TopKHingeLoss: lambda t: so.losses.TopKHingeLoss(3, margin=2.0),
    so.losses.TrimmedLoss: lambda t: so.losses.TrimmedLoss(0.5, temperature=t[1]),
    so.losses.TruncatedTopKEntropyLoss: lambda t: so.losses.TruncatedTopKEntropyLoss(3),
}
_PLAIN = (2.0, 0.25)
_TENSORS = (torch.tensor([1.0, 2.0]), torch.tensor([0.25, 0.5]))
_OTHERS = (torch.tensor([3.0, 0.5]), torch.tensor([4.0, 0.125]))
_KINDS = [pytest.param(_PLAIN, id="numbers"), pytest.param(_TENSORS, id="tensors")]
_each = pytest.mark.parametrize("make", [pytest.param(m, id=c.__name__) for c, m in _MADE.items()])


def _numbers(module):
    """All numbers of it and of what is in it, by name."""
    found = {}
    for name, part in module.named_modules():
        for number in getattr(part, "numbers", ()):
            found[f"{name}.{number}"] = getattr(part, number)
    return found


def _same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        if isinstance(a[name], torch.Tensor):
            torch.testing.assert_close(a[name], b[name], rtol=0, atol=0)
        else:
            assert (type(a[name]), a[name]) == (type(b[name]), b[name])


def test_no_module_is_left_out():
    public = [getattr(home, name) for home in (so.nn, so.losses) for name in home.__all__]
    modules = [x for x in public if isinstance(x, type) and issubclass(x, nn.Module)]
    assert set(modules) == set(_MADE)


@_each
def test_every_number_is_named(make):
    """Whatever number or tensor a module keeps outside its buffers and parameters."""
    for part in make(_TENSORS).modules():
        if not type(part).__module__.startswith("softorder"):
            continue
        held = {n: v for n, v in vars(part).items() if not n.startswith("_")}
        assert not any(isinstance(value, torch.Tensor) for value in held.values())
        numbers = {n for n, v in held.items() if type(v) in (int, float)}
        fixed = {
            "dim",
            "features",
            "groups",
            "group",
            "experts",
            "embed_dim",
            "num_heads",
            "num_kv_heads",
        }  # shapes
        assert numbers <= {*getattr(part, "numbers", ()), *fixed}


@_each
@pytest.mark.parametrize("kind", _KINDS)
def test_a_state_dict_brings_all_numbers_back(make, kind):
    source = make(kind)
    target = make(_OTHERS if kind is _TENSORS else (1.0, 3.0))
    file = io.BytesIO()
    torch.save(source.state_dict(), file)
    file.seek(0)
    target.load_state_dict(torch.load(file, weights_only=True))
    _same(_numbers(source), _numbers(target))


@_each
def test_tensors_move_with_the_module(make):
    module = make(_TENSORS).to(torch.float64)
    for value in _numbers(module).values():
        if isinstance(value, torch.Tensor):
            assert value.dtype == torch.float64
    for value in _numbers(make(_TENSORS).to("meta")).values():
        if isinstance(value, torch.Tensor):
            assert value.device.type == "meta"


@_each
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_have_all_numbers(make, kind, copied):
    module = make(kind)
    _same(_numbers(module), _numbers(copied(module)))


@_each
def test_an_annealed_temperature_comes_back(make):
    source, target = make(_PLAIN), make(_PLAIN)
    if not hasattr(source, "temperature"):
        assert "fixed_temperature" not in _numbers(source)
        return
    source.temperature = 0.0101
    target.load_state_dict(source.state_dict())
    assert target.temperature == 0.0101


def test_what_is_assigned_decides_how_it_is_kept():
    layer = so.nn.SoftTopK(2, temperature=torch.tensor([0.1, 0.2]))
    assert list(dict(layer.named_buffers())) == ["fixed_temperature"]
    layer.temperature, layer.k = 0.5, torch.tensor([1.0, 2.0])
    assert list(dict(layer.named_buffers())) == ["k"]
    assert layer.get_extra_state() == {"fixed_temperature": 0.5}
    layer.k = nn.Parameter(torch.tensor(1.5))
    assert list(dict(layer.named_parameters())) == ["k"]


def test_a_parameter_stays_one_when_it_gets_a_value():
    heat = nn.Parameter(torch.tensor(1.0))
    layer = so.nn.SoftTopK(2, temperature=heat)
    layer.temperature = 0.5
    assert layer.temperature is heat
    assert heat.item() == 0.5


def test_a_state_dict_without_extra_state_leaves_the_numbers():
    layer = so.nn.TopKAttention(4, 2, 3, temperature=0.5)
    layer.load_state_dict(nn.MultiheadAttention(4, 2).state_dict())
    assert (layer.k, layer.temperature) == (3, 0.5)


def test_a_state_with_unknown_names_is_refused():
    layer = so.nn.SoftRank()
    with pytest.raises(
        ValueError, match="SoftRank must hold fixed_temperature, calibrated only, got forward"
    ):
        layer.load_state_dict({"_extra_state": {"forward": 1.0}})
