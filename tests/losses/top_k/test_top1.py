"""What stands for k = 1: a softmax of all classes or of the m that compete, apart or mixed in."""

import pytest
import torch
from torch.nn import functional

import softorder as so
from tests.losses.top_k.problem import EVEN, MIX, problem

_loss = so.losses.top_k_cross_entropy
_KINDS = ["softmax", "softmax_of_m", "mixed_softmax", "mixed_softmax_of_m"]


def _competing(scores, target, m):
    """The target and the m - 1 best of the others, the target first."""
    others = scores.clone().scatter(-1, target[:, None], -1e9)
    classes = torch.cat([target[:, None], others.topk(m - 1).indices], -1)
    return scores.gather(-1, classes), torch.zeros_like(target)


def _printed(scores, target, p_k, m, top1, method, temperature):
    """The formulas as the docstring has them, from the rows of a permutation."""
    few, own = _competing(scores, target, m)
    p = torch.tensor(p_k, dtype=torch.float64)
    options = {"k": len(p_k), "method": method, "temperature": temperature, "descending": True}
    shares = so.soft_permutation(few, **options).cumsum(-2)[..., 0]
    rest = (shares * p)[:, 1:].sum(-1)
    softmax = functional.cross_entropy(few, own, reduction="none")
    if not top1.endswith("of_m"):
        softmax = functional.cross_entropy(scores, target, reduction="none")
    if top1.startswith("mixed"):
        return -torch.log(p[0] * torch.exp(-softmax) + rest)
    return p[0] * softmax - (1 - p[0]) * rest.log()


@pytest.mark.parametrize("top1", _KINDS)
@pytest.mark.parametrize("method", ["laplace", "softsort", "sinkhorn_sort"])
@pytest.mark.parametrize("p_k", [MIX, EVEN, [0.0, 0.5, 0.5]], ids=str)
def test_is_the_formula(top1, method, p_k):
    scores, target = problem(8, 20)
    options = {"method": method, "temperature": 0.6, "top1": top1}
    found = _loss(scores, target, p_k, m=7, reduction="none", **options)
    expected = _printed(scores, target, p_k, 7, **options)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


def test_the_five_are_five():
    scores, target = problem(8, 20)
    losses = [_loss(scores, target, MIX, m=7, top1=kind) for kind in [*_KINDS, "operator"]]
    assert torch.stack(losses).sort().values.diff().min() > 1e-5


@pytest.mark.parametrize("m", [None, 20])
def test_where_all_compete_the_m_are_all(m):
    scores, target = problem(8, 20)
    for top1 in ("softmax", "mixed_softmax"):
        whole = _loss(scores, target, MIX, m=m, top1=top1)
        few = _loss(scores, target, MIX, m=m, top1=f"{top1}_of_m")
        torch.testing.assert_close(few, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("top1", _KINDS[1:])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_k_1_alone_is_torchs_cross_entropy_of_those(top1, weighted, smoothing):
    scores, target = problem(8, 20)
    weight = torch.linspace(0.5, 2, 20, dtype=torch.float64) if weighted else None
    options = {"weight": weight, "label_smoothing": smoothing, "reduction": "none"}
    found = _loss(scores, target, [1.0], top1=top1, m=None, **options)
    expected = functional.cross_entropy(scores, target, **options)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    if not weighted and top1.endswith("of_m"):
        found = _loss(scores, target, [1.0], top1=top1, m=6, **options)
        expected = functional.cross_entropy(*_competing(scores, target, 6), **options)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("top1", _KINDS[1:])
def test_smoothing_and_weights_are_a_mean_over_the_m(top1):
    """Where the softmax is torch's, it is over all classes."""
    scores, target = problem(1, 9)
    weight = torch.linspace(0.5, 2, 9, dtype=torch.float64)
    few = scores.topk(4).indices[0].tolist()
    target[0] = few[1]

    def call(y, **options):
        options = {"m": 4, "top1": top1, "reduction": "sum", "weight": weight, **options}
        return _loss(scores, torch.tensor([y]), [0.5, 0.2, 0.3], **options)

    mean = sum(call(y) for y in few) / 4
    found = call(int(target[0]), label_smoothing=0.3)
    torch.testing.assert_close(found, 0.7 * call(int(target[0])) + 0.3 * mean)


@pytest.mark.parametrize("top1", _KINDS)
def test_gradients(top1):
    scores, target = problem(3, 9)
    tau = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)

    def call(scores, tau, logits):
        options = {"m": 5, "top1": top1, "temperature": tau, "label_smoothing": 0.1}
        return _loss(scores, target, logits.softmax(-1), **options)

    assert torch.autograd.gradcheck(call, (scores.requires_grad_(), tau, logits))


# ---- beside difftopk -----------------------------------------------------------------------------

_THEIRS = {"sm": "mixed_softmax_of_m", "smce": "softmax_of_m", "sort": "operator"}


def _difftopk():
    return pytest.importorskip("difftopk").TopKCrossEntropyLoss


@pytest.mark.parametrize("mode", _THEIRS)
@pytest.mark.parametrize("method", ["softsort", "neuralsort"])
@pytest.mark.parametrize("p_k", [[0.3, 0.2, 0.5], [0.25, 0.0, 0.75]], ids=str)
def test_agrees_with_difftopk(mode, method, p_k):
    """But for the 1e-7 in its logarithms, which is put into ours here; its own mode is "sm"."""
    scores, target = problem(6, 12, torch.float32)
    theirs = _difftopk()(method, 2.0, p_k, n=12, m=8, top1_mode=mode)
    options = {"method": method, "temperature": 0.5, "m": 8, "top1": _THEIRS[mode]}
    for row in range(6):
        x, y = scores[row : row + 1], target[row : row + 1]
        ours, apart = _loss(x.double(), y, p_k, **options), 0.0
        if mode == "smce":
            apart = p_k[0] * functional.cross_entropy(*_competing(x.double(), y, 8))
        share = 1 - p_k[0] if mode == "smce" else 1
        padded = torch.exp((apart - ours) / share) * (1 - 2e-7) + 1e-7
        expected = apart - share * torch.log(padded)
        torch.testing.assert_close(theirs(x, y).double(), expected, rtol=3e-5, atol=3e-6)


def test_its_default_is_the_mixed_softmax_of_m():
    assert _difftopk()("softsort", 2.0, [0.5, 0.5], n=9, m=4).top1_mode == "sm"


def test_difftopk_ships_no_sinkhorn_sort():
    """Its comments name ε = 1/inverse_temperature and anchors from 0 to 1; there is no code."""
    loss = _difftopk()("sinkhorn_sort", 2.0, [0.5, 0.5], n=9, m=4)
    with pytest.raises(AttributeError, match="sort_fn"):
        loss(torch.zeros(2, 9), torch.tensor([0, 1]))
