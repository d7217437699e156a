"""Rows with infinities, ties and zeros of both signs: nothing is lost, and nothing becomes NaN."""

import math

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests.oracles.densities import BUILT_IN

_SIZES = (1, 2, 3, 5, 9, 17, 40, 64, 65, 100, 300)


def _rows(n, dtype, generator, count=6):
    """Scores of many scales, some rounded, with some of them at +inf or -inf."""

    def uniform(*shape):
        return torch.rand(*shape, dtype=torch.float64, generator=generator)

    scores = torch.randn(count, n, dtype=torch.float64, generator=generator)
    scores = scores * 10 ** (6 * uniform(count, 1) - 3)
    scores = torch.where(uniform(count, 1) < 0.3, scores.round(), scores)
    scores = torch.where(uniform(count, 1) < 0.2, scores * 0, scores)  # 0 and -0
    for value in (math.inf, -math.inf):
        some = uniform(count, 1) * (uniform(count, 1) < 0.5)
        scores = torch.where(uniform(count, n) < some, value, scores)
    return scores.to(dtype)


def _sizes(scores, generator):
    """k at the corners: as many as are at +inf, one more or less, all that can be chosen, any."""
    n = scores.shape[-1]
    certain, live = (
        (scores > bound).sum(-1) for bound in (torch.finfo(scores.dtype).max, -math.inf)
    )
    anything = n * torch.rand(len(scores), dtype=torch.float64, generator=generator)
    corners = (certain, certain - 1, certain + 1, certain + 0.5, live, anything)
    return [k.double().clamp(0, n) for k in corners], live


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", [*BUILT_IN, "sinkhorn"])
def test_the_mass_is_k_and_nothing_is_nan(kernel, density, dtype):
    generator = torch.Generator().manual_seed(0)
    for n in _SIZES:
        scores = _rows(n, dtype, generator)
        draw = torch.rand(len(scores), dtype=torch.float64, generator=generator)
        temperature = 10 ** (12 * draw - 6)
        sizes, live = _sizes(scores, generator)
        for k in sizes:
            inputs = [x.clone().requires_grad_() for x in (scores, k, temperature)]
            p = so.soft_topk(inputs[0], inputs[1], temperature=inputs[2], method=density)
            mass, wanted = p.double().sum(-1), torch.minimum(k, live)
            slack = (2e-6 if dtype == torch.float32 else 1e-11) * wanted.clamp(min=1)
            assert ((mass - wanted).abs() <= slack).all(), (n, k, scores)
            weights = torch.linspace(-1, 1, n, dtype=dtype)
            gradients = torch.autograd.grad((p * weights).sum(), inputs)
            assert all(gradient.isfinite().all() for gradient in gradients), (n, k, scores)


@pytest.mark.parametrize("density", BUILT_IN)
def test_a_zero_has_no_sign(kernel, density):
    generator = torch.Generator().manual_seed(1)
    for n in _SIZES:
        plus = torch.zeros(n)
        plus[::3] = -math.inf
        signs = torch.where(torch.rand(4, n, generator=generator) < 0.5, -1.0, 1.0)
        for sign in signs:  # a row alone takes another way than several
            both = torch.where(plus == 0, plus * sign, plus)
            alone, plain = (so.soft_topk(row, n / 2, method=density) for row in (both, plus))
            assert torch.equal(alone, plain), sign


def test_kernels_agree_at_the_corners():
    generator = torch.Generator().manual_seed(2)
    for n in _SIZES:
        scores = _rows(n, torch.float64, generator)
        for k in _sizes(scores, generator)[0]:
            answers = []
            for kind in ("native", "torch"):
                with _native.use(kind):
                    answers.append(so.soft_topk(scores, k, temperature=0.5))
            torch.testing.assert_close(*answers, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", BUILT_IN)
def test_nan_stays_in_its_row_however_many_are_solved_at_once(level, density, dtype):
    """Short rows are solved side by side, and sorted: NaN leaves nothing behind for the next."""
    generator = torch.Generator().manual_seed(1)
    for n in (2, 3, 9, 31, 64):
        rows = torch.randn(50, n, generator=generator).to(dtype)
        broken = torch.arange(50) % 3 == 0
        spoilt = rows.clone()
        spoilt[broken, torch.arange(50)[broken] % n] = math.nan
        for temperature in (0.01, 0.3, 10):
            with _native.use("native"), _native.use_level(level):
                p, clean = (
                    so.soft_topk(x, 1.0, method=density, temperature=temperature)
                    for x in (spoilt, rows)
                )
            assert p[broken].isnan().all()
            tolerance = 1e-12 if dtype is torch.float64 else 2e-6
            torch.testing.assert_close(p[~broken], clean[~broken], rtol=0, atol=tolerance)


#: what torch makes of a NaN in float16 when it widens it; a signalling one; one with a sign
_NANS = {torch.float32: (0x7FFFFFFF, 0x7F800001, -1), torch.float64: (0x7FFFFFFFFFFFFFFF, -1)}


@pytest.mark.parametrize("name", so.densities.BUILT_IN)
@pytest.mark.parametrize("dtype", _NANS, ids=str)
@pytest.mark.parametrize("n", [3, 20, 100])
def test_any_bits_of_nan_are_nan(name, dtype, n):
    for bits in _NANS[dtype]:
        scores = torch.randn(2, n, dtype=dtype, generator=torch.Generator().manual_seed(n))
        scores.view(torch.int32 if dtype is torch.float32 else torch.int64)[0, n // 2] = bits
        for function in (
            lambda x: so.soft_topk(x, 2, method=name, temperature=0.2),
            lambda x: so.log_soft_topk(x, 2, method=name, temperature=0.2),
            lambda x: so.soft_rank(x, method=name, temperature=0.2),
            lambda x: so.soft_sort(x, method=name, temperature=0.2),
        ):
            result = function(scores)
            assert result[0].isnan().all()
            assert not result[1].isnan().any()
