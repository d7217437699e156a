"""Top-k attention against scaled_dot_product_attention, MultiheadAttention and its formula."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import softorder as so
from tests.nn.close import assert_compiles

_METHODS = sorted({row.name for row in so.methods() if row.operator == "soft_topk"})
_topk_attention = so.nn.functional.topk_attention


def _tensors(*lengths, features=4, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, 3, length, features) for length in lengths]
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def _masks():
    open_ = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(1)) < 0.6
    open_[..., 0] = True
    added = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return {"none": None, "bool": open_, "row": open_[0, 0, :1], "float": added}


# ---- the function -----------------------------------------------------------------------------


@pytest.mark.parametrize("k", [7, 9.5, torch.tensor(8.0)])
@pytest.mark.parametrize("mask", _masks().values(), ids=_masks())
@pytest.mark.parametrize("hard", [True, False])
def test_all_keys_is_scaled_dot_product_attention(k, mask, hard):
    q, key, v = _tensors(5, 7, 7)
    expected = F.scaled_dot_product_attention(q, key, v, attn_mask=mask, scale=0.3)
    result = _topk_attention(q, key, v, k, attn_mask=mask, scale=0.3, hard_topk=hard)
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("method", _METHODS)
def test_weights_are_softmax_of_scores_plus_log_share(method):
    q, key, v = _tensors(5, 7, 7)
    scores = q @ key.mT / 2
    shares = so.soft_topk(scores, 3, method=method, temperature=0.7)
    expected = torch.softmax(scores + shares.log(), -1) @ v
    result = _topk_attention(q, key, v, 3, method=method, temperature=0.7)
    torch.testing.assert_close(result, expected)


def test_hard_attends_to_the_k_largest_alone():
    q, key, v = _tensors(5, 7, 7)
    scores = q @ key.mT / 2
    kept = torch.full_like(scores, -math.inf)
    best = scores.topk(3)
    kept.scatter_(-1, best.indices, best.values)
    result = _topk_attention(q, key, v, 3, hard_topk=True)
    torch.testing.assert_close(result, kept.softmax(-1) @ v)
    cold = _topk_attention(q, key, v, 3, temperature=1e-6)
    torch.testing.assert_close(cold, result)


def test_causal_is_the_triangular_mask():
    q, key, v = _tensors(6, 6, 6)
    triangle = torch.ones(6, 6, dtype=torch.bool).tril()
    result = _topk_attention(q, key, v, 2, is_causal=True)
    torch.testing.assert_close(result, _topk_attention(q, key, v, 2, attn_mask=triangle))
    # what comes later changes nothing, and the first two queries see no more than two keys
    torch.testing.assert_close(
        result[..., :4, :], _topk_attention(q[..., :4, :], key[..., :4, :], v[..., :4, :], 2,
                                            is_causal=True)
    )  # fmt: skip
    plain = F.scaled_dot_product_attention(q, key, v, is_causal=True)
    torch.testing.assert_close(result[..., :2, :], plain[..., :2, :])


def test_a_query_that_sees_nothing_gets_zero_and_spoils_no_gradient():
    q, key, v = (x.requires_grad_() for x in _tensors(5, 7, 7))
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[2] = False
    result = _topk_attention(q, key, v, 3, attn_mask=mask)
    assert (result[..., 2, :] == 0).all()
    result.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, key, v))
    assert (q.grad[..., 2, :] == 0).all()


def test_a_masked_key_might_as_well_not_be_there():
    q, key, v = _tensors(5, 7, 7)
    mask = torch.arange(7) < 4
    padded = _topk_attention(q, key, v, 2, attn_mask=mask)
    torch.testing.assert_close(padded, _topk_attention(q, key[..., :4, :], v[..., :4, :], 2))


def test_derivatives_in_everything():
    q, key, v = (x[:1, :1].requires_grad_() for x in _tensors(3, 5, 5, features=2))
    k = torch.tensor([1.3, 2.0, 2.6], dtype=torch.float64, requires_grad=True)
    temperature = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)

    def attend(q, key, v, k, temperature):
        return _topk_attention(q, key, v, k, temperature=temperature, method="logistic")

    assert torch.autograd.gradcheck(attend, (q, key, v, k, temperature))
    assert torch.autograd.gradgradcheck(attend, (q, key, v, k, temperature))


def test_exact_zeros_have_finite_gradients():
    q, key, v = (x.requires_grad_() for x in _tensors(5, 7, 7))
    weights = _topk_attention(q, key, torch.eye(7, dtype=torch.float64), 2,
                              method="uniform", temperature=0.1)  # fmt: skip
    assert (weights == 0).sum() > 50
    (weights @ v).square().sum().backward()
    assert all(x.grad.isfinite().all() for x in (q, key, v))
    assert q.grad.abs().sum() > 0


def test_dropout_drops_and_keeps_the_mean():
    q, key, v = _tensors(5, 7, 7)
    torch.manual_seed(0)
    ones = torch.ones_like(v)
    runs = torch.stack(
        [_topk_attention(q, key, ones, 3, dropout_p=0.4) for _ in range(400)]
    )  # of 12,000 sums of weights with a standard deviation < 1: six standard errors are 0.06
    assert (runs[0] - 1).abs().max() > 0.1
    assert (runs.mean() - 1).abs() < 0.06


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_single_precision(dtype):
    q, key, v = (x.to(dtype) for x in _tensors(5, 7, 7))
    result = _topk_attention(q, key, v, 3)
    assert result.dtype == dtype
    expected = _topk_attention(q.float(), key.float(), v.float(), 3)
    torch.testing.assert_close(result.float(), expected, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)], ids=["no queries", "no keys"])
def test_empty(shape):
    q, key, v = _tensors(shape[0], shape[1], shape[1])
    result = _topk_attention(q, key, v, 1)
    assert result.shape == (2, 3, shape[0], 4)
    assert (result == 0).all()


def test_wrong_arguments():
    q, key, v = _tensors(5, 7, 7)
    wrong = [
        ({"k": 0}, ValueError, "k must be finite and > 0, but got 0"),
        ({"k": "3"}, TypeError, "k must be a real number"),
        ({"k": -torch.ones(())}, ValueError, "k must be between 0 and 7"),
        ({"key": key[..., :2]}, ValueError, "same number of features, but got 4 and 2"),
        ({"value": v[..., :2, :]}, ValueError, "same length, but got 7 and 2"),
        ({"query": q.long()}, TypeError, "query must have a floating dtype, but got int64"),
        ({"query": q[0, 0, 0]}, ValueError, "query must have at least 2 axes"),
        (
            {"attn_mask": torch.ones(4, 7)},
            ValueError,
            r"mask must broadcast to \(2, 3, 5, 7\)",
        ),
        ({"attn_mask": torch.ones(3, 3, 1, 1)}, ValueError, "attn_mask must broadcast"),
        ({"query": q[0, :2]}, ValueError, r"leading axes that broadcast, but got \(2,\), \(2, 3\)"),
        ({"attn_mask": torch.ones(5, 7).long()}, TypeError, "attn_mask must be of dtype bool"),
        ({"dropout_p": 1.5}, ValueError, "dropout_p must be between 0 and 1, but got 1.5"),
        ({"temperature": 0.0}, ValueError, "temperature must be finite and > 0"),
        ({"method": "lapsum"}, ValueError, "did you mean 'laplace'"),
        ({"hard_topk": 1}, TypeError, "hard_topk must be True or False"),
    ]
    for change, error, message in wrong:
        with pytest.raises(error, match=message):
            _topk_attention(**{"query": q, "key": key, "value": v, "k": 3, **change})


@pytest.mark.parametrize("heads", [(2, 2), (1, 3), (6, 1), (6, 6)])
def test_fewer_heads_of_keys_than_of_queries(heads):
    """`enable_gqa`: for k >= S torch's own result, for less that of keys and values repeated."""
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(2, 6, 5, 4, generator=generator, dtype=torch.float64)
    key, v = (torch.randn(2, n, 7, 4, generator=generator, dtype=torch.float64) for n in heads)
    mask = torch.rand(6, 5, 7, generator=generator) < 0.7
    mask[..., 0] = True
    wide = [x.repeat_interleave(6 // x.shape[1], 1) for x in (key, v)]
    if heads[0] == heads[1]:  # torch wants as many heads of values as of keys
        options = {"attn_mask": mask, "enable_gqa": True}
        expected = F.scaled_dot_product_attention(q, key, v, **options)
        torch.testing.assert_close(_topk_attention(q, key, v, 7, **options), expected)
    few = _topk_attention(q, key, v, 3, attn_mask=mask, enable_gqa=True)
    torch.testing.assert_close(few, _topk_attention(q, *wide, 3, attn_mask=mask))


def test_heads_that_do_not_divide_are_refused():
    q, key, v = _tensors(5, 7, 7)  # of 3 heads
    with pytest.raises(ValueError, match="key must have a number of heads that divides those of"):
        _topk_attention(q, key[:, :2], v[:, :2], 3, enable_gqa=True)
    with pytest.raises(ValueError, match="query, key and value must have leading axes"):
        _topk_attention(q, key[:, :1].expand(-1, 2, -1, -1), v, 3)
    with pytest.raises(TypeError, match="enable_gqa must be True or False"):
        _topk_attention(q, key, v, 3, enable_gqa=1)
    with pytest.raises(ValueError, match="query must have at least 3 axes"):
        _topk_attention(q[0, 0], key[0, 0], v[0, 0], 3, enable_gqa=True)


def test_compiles():
    q, key, v = _tensors(5, 7, 7)
    k, temperature = torch.tensor(2.5).double(), torch.tensor(0.8).double()

    def attend(q, key, v, k, temperature):
        return _topk_attention(q, key, v, k, temperature=temperature)

    assert_compiles(attend, q, key, v, k, temperature)


def test_vmap_and_forward_mode():
    q, key, v = _tensors(5, 7, 7)

    def attend(q):
        return _topk_attention(q, key[0], v[0], 3, method="logistic")

    one_by_one = torch.stack([attend(x) for x in q])
    torch.testing.assert_close(torch.func.vmap(attend)(q), one_by_one)
    direction = torch.ones_like(q[0])
    _, forward = torch.func.jvp(attend, (q[0],), (direction,))
    step = 1e-6
    difference = (attend(q[0] + step * direction) - attend(q[0] - step * direction)) / (2 * step)
    torch.testing.assert_close(forward, difference, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_inductor_gives_the_same():
    layer = _encoder(2)
    x = torch.randn(4, 6, 8)
    torch.compiler.reset()
    torch.testing.assert_close(torch.compile(layer, fullgraph=True)(x), layer(x))


# ---- the layer --------------------------------------------------------------------------------


def _layers(k, batch_first=True, **options):
    torch.manual_seed(0)
    plain = nn.MultiheadAttention(8, 2, batch_first=batch_first, **options).eval()
    return plain, so.nn.TopKAttention.from_attention(plain, k, temperature=0.5)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("dims", [{}, {"kdim": 5, "vdim": 3}, {"bias": False}], ids=str)
@pytest.mark.parametrize("average", [True, False])
def test_with_all_keys_it_is_multihead_attention(batch_first, dims, average):
    plain, ours = _layers(100, batch_first, **dims)
    assert not ours.training
    x, key = torch.randn(4, 6, 8), torch.randn(4, 6, dims.get("kdim", 8))
    value = torch.randn(4, 6, dims.get("vdim", 8))
    batch = 4 if batch_first else 6
    padding = torch.zeros(batch, 10 - batch, dtype=torch.bool)
    padding[1, 2:] = True
    causal = torch.ones(10 - batch, 10 - batch, dtype=torch.bool).triu(1)
    for masks in ({}, {"key_padding_mask": padding}, {"attn_mask": causal},
                  {"key_padding_mask": padding, "attn_mask": causal, "is_causal": True},
                  {"attn_mask": torch.randn(2 * batch, 10 - batch, 10 - batch)}):  # fmt: skip
        arguments = {"average_attn_weights": average, **masks}
        for mine, theirs in zip(
            ours(x, key, value, **arguments), plain(x, key, value, **arguments), strict=True
        ):
            torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("dims", [{}, {"kdim": 5, "vdim": 3}, {"bias": False}], ids=str)
@pytest.mark.parametrize("shared", [1, 2])
def test_fewer_heads_of_keys_are_a_plain_attention_with_repeated_ones(dims, shared):
    """Parameters of a plain layer that repeats each head of keys and values do the same."""
    torch.manual_seed(0)
    few = so.nn.TopKAttention(8, 4, 2, num_kv_heads=shared, batch_first=True, **dims)
    plain = nn.MultiheadAttention(8, 4, batch_first=True, **dims)

    def repeat(value):
        return value.unflatten(0, (shared, 2)).repeat_interleave(4 // shared, 0).flatten(0, 1)

    weights = [few.q_proj_weight, repeat(few.k_proj_weight), repeat(few.v_proj_weight)]
    state = {"out_proj.weight": few.out_proj.weight}
    if "kdim" in dims:
        state |= {f"{name}_proj_weight": w for name, w in zip("qkv", weights, strict=True)}
    else:
        state["in_proj_weight"] = torch.cat(weights)
    if dims.get("bias", True):
        nn.init.normal_(few.in_proj_bias)
        q, k, v = few.in_proj_bias.split([8, 2 * shared, 2 * shared])
        state |= {"in_proj_bias": torch.cat([q, repeat(k), repeat(v)])}
        state |= {"out_proj.bias": few.out_proj.bias}
    plain.load_state_dict(state)
    x, key = torch.randn(2, 3, 8), torch.randn(2, 5, dims.get("kdim", 8))
    value = torch.randn(2, 5, dims.get("vdim", 8))
    for k in (2, 5):
        few.k = k
        many = so.nn.TopKAttention.from_attention(plain, k)
        torch.testing.assert_close(few(x, key, value), many(x, key, value))
    back = so.nn.TopKAttention.from_attention(plain, 5, num_kv_heads=shared)  # means of equal ones
    torch.testing.assert_close(back(x, key, value), plain(x, key, value))
    assert f"num_kv_heads={shared}" in repr(back)
    back.load_state_dict(few.state_dict())
    back(x, key, value)[0].square().sum().backward()
    assert (back.k_proj_weight.grad != 0).any()


def test_without_batch_and_without_weights():
    plain, ours = _layers(100)
    x = torch.randn(6, 8)
    torch.testing.assert_close(ours(x, x, x)[0], plain(x, x, x)[0])
    assert ours(x, x, x, need_weights=False)[1] is None


def test_state_dicts_fit_both_ways():
    """Ours has an extra state, which torch's layer calls unexpected."""
    torch.manual_seed(0)
    plain, ours = nn.MultiheadAttention(8, 2), so.nn.TopKAttention(8, 2, 3)
    assert not torch.equal(plain.in_proj_weight, ours.in_proj_weight)
    extra = plain.load_state_dict(ours.state_dict(), strict=False)
    assert extra.missing_keys == []
    assert extra.unexpected_keys == ["_extra_state"]
    x = torch.randn(5, 3, 8)
    ours.k = 5
    torch.testing.assert_close(ours(x, x, x)[0], plain(x, x, x)[0])


def test_state_dict_round_trip_with_a_temperature_for_every_head():
    make = lambda start: so.nn.TopKAttention(  # noqa: E731
        8, 2, 3, temperature=torch.tensor(start).unsqueeze(-1), learnable_temperature=True
    )
    source, target = make([0.1, 0.5]), make([1.0, 1.0])
    target.load_state_dict(source.state_dict())
    x = torch.randn(5, 3, 8)
    result, weights = target(x, x, x, average_attn_weights=False)
    assert torch.equal(result, source(x, x, x)[0])
    result.square().sum().backward()
    assert (target.log_temperature.grad.abs() > 0).all()
    assert weights.shape == (3, 2, 5, 5)


def test_hard_at_inference_only():
    torch.manual_seed(0)
    layer = so.nn.TopKAttention(8, 2, 2, hard_inference=True, batch_first=True)
    x = torch.randn(3, 6, 8)
    count = lambda: (layer(x, x, x, average_attn_weights=False)[1] > 0).sum(-1)  # noqa: E731
    assert (count() == 6).all()
    layer.eval()
    assert (count() == 2).all()


def _encoder(k, batch_first=True, norm_first=False):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, batch_first=batch_first, norm_first=norm_first
    )
    if k:
        layer.self_attn = so.nn.TopKAttention.from_attention(layer.self_attn, k, temperature=0.2)
    return layer


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_in_a_transformer_layer_it_is_used_in_training_and_inference(batch_first, norm_first):
    x = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(3))
    padding = torch.zeros((4, 6) if batch_first else (6, 4), dtype=torch.bool)
    padding[:, -1] = True
    plain, everything, few = (_encoder(k, batch_first, norm_first) for k in (None, 100, 2))
    for mode in (True, False):
        for layer in (plain, everything, few):
            layer.train(mode)
        with torch.set_grad_enabled(mode):
            a, b, c = (layer(x, src_key_padding_mask=padding) for layer in (plain, everything, few))
        torch.testing.assert_close(a, b)
        assert (a - c).abs().max() > 0.01  # the fast path of torch would have made them equal


def test_in_a_whole_encoder():
    x = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(3))
    stack = nn.TransformerEncoder(_encoder(2), 2, enable_nested_tensor=False)
    trained = stack(x)
    trained.square().sum().backward()
    assert all(p.grad is not None for p in stack.parameters())
    with torch.no_grad():
        torch.testing.assert_close(stack.eval()(x), trained)


def test_layer_compiles():
    layer = _encoder(2)
    x = torch.randn(4, 6, 8)
    assert_compiles(layer, x, parameters=layer.parameters(), rtol=1e-4, atol=1e-5)


def test_autocast():
    layer = so.nn.TopKAttention(8, 2, 2)
    x = torch.randn(6, 3, 8)
    expected = layer(x, x, x)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = layer(x, x, x)[0]
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result.float(), expected, rtol=0.1, atol=0.05)
    result.float().square().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.abs().sum() > 0
               for p in layer.parameters())  # fmt: skip


def test_wrong_layers():
    wrong = [
        ((8, 3, 2), {}, ValueError, "embed_dim must be a multiple of num_heads = 3, but got 8"),
        ((8, 0, 2), {}, ValueError, "num_heads must be at least 1"),
        ((8, 2, 0), {}, ValueError, "k must be finite and > 0"),
        ((8, 2, 2), {"dropout": -1}, ValueError, "dropout must be between 0 and 1"),
        ((8, 2, 2), {"method": "softest"}, ValueError, "method must be one of"),
    ]
    for arguments, options, error, message in wrong:
        with pytest.raises(error, match=message):
            so.nn.TopKAttention(*arguments, **options)
    with pytest.raises(TypeError, match="MultiheadAttention, but got Linear"):
        so.nn.TopKAttention.from_attention(nn.Linear(2, 2), 3)
    for option in ("add_bias_kv", "add_zero_attn"):
        with pytest.raises(ValueError, match=option):
            so.nn.TopKAttention.from_attention(nn.MultiheadAttention(4, 2, **{option: True}), 3)
    with pytest.raises(ValueError, match="num_kv_heads must divide num_heads = 4, but got 3"):
        so.nn.TopKAttention(8, 4, 2, num_kv_heads=3)
    with pytest.raises(ValueError, match="num_kv_heads must be at least 1, but got 0"):
        so.nn.TopKAttention(8, 4, 2, num_kv_heads=0)


def test_repr_tells_how_it_was_made():
    layer = so.nn.TopKAttention(8, 2, 3, method="normal", batch_first=True)
    for part in ("embed_dim=8", "num_heads=2", "k=3", "method='normal'", "batch_first=True"):
        assert part in repr(layer)


def test_parameters_are_those_of_torch():
    for options in ({}, {"bias": False}, {"kdim": 3, "vdim": 5}):
        plain = nn.MultiheadAttention(8, 2, **options).state_dict()
        layer = so.nn.TopKAttention(8, 2, 3, **options)
        layer.load_state_dict(plain)
        ours = dict(layer.named_parameters())
        assert {n: p.shape for n, p in plain.items()} == {n: p.shape for n, p in ours.items()}
