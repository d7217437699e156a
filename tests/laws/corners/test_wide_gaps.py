"""Where tails of the normal density underflow: two orders of derivatives by 60 digits."""

import mpmath
import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests.laws.corners.answers import answers, solver
from tests.laws.corners.rows import Row

_WEIGHTS = (0.7, -1.3, 0.4, 1.9, -0.6)
_STEP = mpmath.mpf(10) ** -30  # of τ


def _log_tail(a):
    return mpmath.log(mpmath.erfc(a / mpmath.sqrt(2)) / 2)


def _log_shares(scores, tau):
    """log p for k = 2: b is where what the two largest miss is what the others have."""
    ordered = sorted(scores, reverse=True)

    def log_sum(side, b):
        logs = [_log_tail(abs(x - b) / tau) for x in side]
        return max(logs) + mpmath.log(sum(mpmath.exp(v - max(logs)) for v in logs))

    middle = (ordered[1] + ordered[2]) / 2
    b = mpmath.findroot(
        lambda b: log_sum(ordered[2:], b) - log_sum(ordered[:2], b),
        (middle, middle + tau * _STEP),
        tol=mpmath.mpf(10) ** -90,
        verify=False,
    )
    return [mpmath.log(mpmath.erfc((b - x) / tau / mpmath.sqrt(2)) / 2) for x in scores]


def _oracle(scores, tau):
    """∇s and its slope along the weights, s = Σ w log p."""
    x = [mpmath.mpf(v) for v in scores]
    h = tau * _STEP

    def s(j, by, along):
        moved = [v + along * mpmath.mpf(w) for v, w in zip(x, _WEIGHTS, strict=True)]
        moved[j] += by
        logs = _log_shares(moved, tau)
        return sum(mpmath.mpf(w) * v for w, v in zip(_WEIGHTS, logs, strict=True))

    first = [(s(j, h, 0) - s(j, -h, 0)) / (2 * h) for j in range(5)]
    second = [
        (s(j, h, h) - s(j, -h, h) - s(j, h, -h) + s(j, -h, -h)) / (4 * h * h) for j in range(5)
    ]
    return first, second


@pytest.mark.parametrize("kind", _native.KINDS)
@pytest.mark.parametrize("tau", [1e-2, pytest.param(1e-12, id="cold")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_soft_topk(kind, tau, dtype):
    """log p of up to 10^24: in float32 rounding it would move shares by e^10^17."""
    scores = torch.tensor([0.3, -1.1, 2.0, 0.9, -0.4], dtype=dtype).tolist()
    row = Row("cold", tuple(scores), k=2.0, temperature=tau)
    with _native.use(kind):
        (found,) = answers(solver("log_soft_topk", "normal"), "log_soft_topk", [row], dtype)
    with mpmath.workdps(130):
        first, second = _oracle(scores, mpmath.mpf(tau))
    for mine, right in ((found.first, first), (found.second, second)):
        expected = torch.tensor([float(v) for v in right], dtype=torch.float64)
        bound = 2e-5 * expected.abs().max()
        assert (mine["scores"].double() - expected).abs().max() <= bound


@pytest.mark.parametrize("kind", _native.KINDS)
def test_a_score_does_nothing_to_itself(kind):
    """1/τ times what rounding made of f(0) - f(0) was 65,536 in float32."""
    x = torch.tensor([0.3, -1.1, 2.0, 0.9, -0.4], requires_grad=True)
    with _native.use(kind):
        ranks = so.soft_rank(x, method="normal", temperature=1e-12)
        weights = torch.tensor(_WEIGHTS)
        (gradient,) = torch.autograd.grad((weights * ranks).sum(), x, create_graph=True)
    assert not gradient.any()


@pytest.mark.parametrize("kind", _native.KINDS)
@pytest.mark.parametrize(("method", "far"), [("normal", 5.2e168), ("logistic", 1e308)])
def test_a_root_beyond_all_logarithms_is_in_the_middle(kind, method, far):
    scores = torch.tensor([-far, 0.8, far], dtype=torch.float64)
    levels = torch.tensor([0.5, 1, 1.2, 1.5, 1.7, 2], dtype=torch.float64)
    with _native.use(kind):
        t = so.fsum_inverse(scores, levels, method=method, temperature=1e-5)
        losses = so.losses.permutation_cross_entropy(
            scores, torch.tensor([1, 0, 2]), method=method, temperature=1e-5, reduction="none"
        )
    torch.testing.assert_close(t[[1, 5]], torch.tensor([-0.5, 0.5]).double() * far)
    assert (losses[:2] >= 1e308).all()
    assert losses[2] == 0


def test_sequential_softmax_in_float32():
    """What a winner leaves underflows; and differences of losers, beside a winner of 100."""
    for scores, tau in (((200.0, 100.0, 100.0), 1.0), ((5.5e-7, 100.0, -8.2e-7), 7e-28)):
        x = torch.tensor(scores)
        options = {"method": "sequential_softmax", "temperature": tau}
        narrow, wide = (so.soft_topk(v, 1.75, **options) for v in (x, x.double()))
        torch.testing.assert_close(narrow.double(), wide, rtol=1e-6, atol=1e-6)
