"""k of L tokens: weighed in training, gathered in use."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import softorder as so
from tests.nn.close import assert_compiles


def _layer(k=3, **options):
    torch.manual_seed(0)
    return so.nn.TokenSelection(4, k, **{"temperature": 0.3, **options}).double()


def _x(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_tokens_times_their_soft_topk():
    layer, x = _layer(), _x(2, 9, 4)
    kept = layer(x)
    p = so.soft_topk(layer.scorer(x).squeeze(-1), 3, temperature=0.3)
    torch.testing.assert_close(kept.weights, p)
    torch.testing.assert_close(kept.tokens, x * p.unsqueeze(-1))
    torch.testing.assert_close(kept.attn_mask()[:, 0, 0], p.log())
    assert torch.equal(kept.places, torch.arange(9).expand(2, 9))


def test_in_use_the_k_best_in_their_order():
    layer, x = _layer().eval(), _x(5, 9, 4)
    kept = layer(x)
    best = layer.scorer(x).squeeze(-1).topk(3).indices.sort().values
    assert torch.equal(kept.places, best)
    for row in range(5):
        assert torch.equal(kept.tokens[row], x[row, best[row]])
    assert (kept.weights == 1).all()
    layer.hard_inference = False
    assert layer(x).tokens.shape == x.shape


@pytest.mark.parametrize("options", [{"temperature": 1e-4}, {"hard": True}])
def test_attention_to_all_with_the_mask_is_attention_to_those_who_are_gathered(options):
    """As the temperature goes to 0, and at once with straight-through."""
    layer, x, query = _layer(**options), _x(2, 9, 4), _x(2, 1, 5, 4, seed=2)

    def attend(kept):
        values = kept.tokens.unsqueeze(1)
        return F.scaled_dot_product_attention(query, values, values, attn_mask=kept.attn_mask())

    torch.testing.assert_close(attend(layer(x)), attend(layer.eval()(x)))


def test_padding_is_never_chosen():
    mask = torch.arange(9) < torch.tensor([[9], [5], [2]])
    x = _x(3, 9, 4)
    for options in ({}, {"hard": True}):
        layer = _layer(**options)
        weights = layer(x, mask).weights
        assert (weights[~mask] == 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.tensor([3.0, 3.0, 2.0]).double())
        kept = layer.eval()(x, mask)
        assert kept.tokens.shape == (3, 3, 4)
        torch.testing.assert_close(kept.weights.sum(-1), torch.tensor([3.0, 3.0, 2.0]).double())
        assert (kept.tokens[kept.weights == 0] == 0).all()
        assert mask.gather(1, kept.places)[kept.weights == 1].all()


def test_short_sequences_stay():
    layer, x = _layer(k=5), _x(2, 3, 4)
    torch.testing.assert_close(layer(x).tokens, x)
    torch.testing.assert_close(layer.eval()(x).tokens, x)


def test_the_scorer_learns():
    for hard in (False, True):
        layer, x = _layer(hard=hard), _x(2, 9, 4)
        layer(x).tokens.square().sum().backward()
        assert layer.scorer.weight.grad.abs().sum() > 0
    layer = _layer(method="logistic")

    def tokens(x, weight):
        return torch.func.functional_call(layer, {"scorer.weight": weight}, (x,)).tokens

    weight = layer.scorer.weight.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(tokens, (_x(1, 5, 4).requires_grad_(), weight))


def test_compiles_and_autocast():
    layer = _layer()
    assert_compiles(lambda x: layer(x).tokens, _x(2, 9, 4), parameters=layer.parameters())
    layer = so.nn.TokenSelection(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(_x(2, 9, 4).float()).tokens.isfinite().all()


def test_wrong_arguments():
    x = _x(2, 9, 4)
    wrong = [
        (lambda: so.nn.TokenSelection(4, 0), ValueError, "k must be at least 1"),
        (lambda: _layer()(x[0]), ValueError, r"x must have the shape \(batch, length, 4\)"),
        (lambda: _layer()(x[..., :3]), ValueError, "but got shape"),
        (lambda: _layer()(x, torch.ones(2, 9)), TypeError, "mask must be a tensor of dtype bool"),
        (
            lambda: _layer()(x, torch.ones(9, dtype=torch.bool)),
            ValueError,
            r"mask must have the shape \(2, 9\)",
        ),
        (
            lambda: _layer(scorer=nn.Linear(4, 2))(x),
            ValueError,
            r"scorer must give the shape \(2, 9, 1\), one number for each token, but gave",
        ),
    ]
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()
