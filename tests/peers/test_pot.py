"""POT: entropic transport by Sinkhorn's iterations."""

import warnings

import pytest
import torch

import softorder as so
from tests.oracles.transport import problem
from tests.peers.statements import ALL, Peer, agreement, difference, error, scores

PEER = Peer("POT", "0.9.7.post1", "ot")


def _ours(k, epsilon):
    return lambda x: so.soft_permutation(x, k=k, method="sinkhorn", temperature=epsilon)


def _theirs(k, epsilon, method="sinkhorn_log", **options):
    ot = PEER.load()

    def call(x):
        cost, mu, nu = (v.squeeze(0) for v in problem(x.unsqueeze(0), k))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says where it gives up
            plan = ot.sinkhorn(mu, nu, cost, epsilon, method=method, **options)
        return len(x) * plan.mT[:k]

    return call


@agreement(
    PEER,
    theirs="sinkhorn(mu, nu, (x - anchors)², ε), ε ≥ 1, until nothing moves",
    ours='soft_permutation(x, k=k, method="sinkhorn", temperature=ε)',
    values=ALL,
    gradients=ALL,
    note="times n; gradients of theirs through all iterations",
)
def test_plans():
    options = {"numItermax": 300, "stopThr": 0.0}
    return [(_ours(k, e), _theirs(k, e, **options), scores(8)) for k, e in ((2, 1.0), (8, 2.0))]


def _violation(p, x, epsilon):
    """How far P is from being the plan: its marginals, and log P + cost/ε = f_i + g_j.

    These two conditions have one solution, so that no other program need be asked. The second is
    checked between neighbours, wherever nothing underflows.
    """
    x, order = x.sort()
    p = p[:, order]
    anchors = torch.arange(len(x), dtype=x.dtype).unsqueeze(-1)
    form = (p.log() + (x - anchors) ** 2 / epsilon).diff(dim=0).diff(dim=1)
    seen = form.isfinite()
    assert seen.sum() > len(x)
    marginals = max((p.sum(0) - 1).abs().max(), (p.sum(1) - 1).abs().max())
    return marginals.item(), form[seen].abs().max().item()


@difference(
    PEER,
    "ε = 0.05, n anchors, `sinkhorn_log`, 1,000 iterations as by default",
    theirs="P off by 0.02",
    ours="right to 11 digits",
    proof="marginals and the form of P, which have one solution",
)
def test_iterations_run_out():
    x, epsilon = scores(12), 0.05
    p = _ours(12, epsilon)(x)
    marginals, structure = _violation(p, x, epsilon)
    assert marginals < 1e-11
    assert structure < 1e-8
    theirs = _theirs(12, epsilon)(x)
    assert error(theirs, p) == pytest.approx(0.02, abs=0.005)
    assert _violation(theirs, x, epsilon)[0] > 1e-3


@difference(
    PEER,
    "ε = 0.01, n anchors, the default method `sinkhorn`",
    theirs="next to no mass: exp(-cost/ε) underflows",
    ours="marginals right to 11 digits",
    proof="the constraints themselves",
)
def test_underflow():
    x, epsilon = scores(12), 0.01
    theirs = _theirs(12, epsilon, method="sinkhorn")(x)
    assert not theirs.sum() > 1  # of 12
    p = _ours(12, epsilon)(x)
    for axis in (0, 1):
        torch.testing.assert_close(p.sum(axis), torch.ones_like(x), rtol=0, atol=1e-11)


@agreement(
    PEER,
    theirs="emd_1d(x, anchors, mu, nu)",
    ours='soft_permutation(x, k=k, method="sinkhorn", temperature=1e-6)',
    values=ALL,
    gradients=None,
    note="times n; the cold limit: theirs has no entropy at all",
)
def test_cold_plans():
    ot = PEER.load()

    def theirs(x):
        _, mu, nu = (v.squeeze(0).numpy() for v in problem(x.unsqueeze(0), 5))
        anchors = torch.arange(len(nu), dtype=x.dtype).numpy()
        return 20 * torch.from_numpy(ot.emd_1d(x.numpy(), anchors, mu, nu)).mT[:5]

    return _ours(5, 1e-6), theirs, scores(20)


@pytest.mark.slow
@difference(
    PEER,
    "ε = 0.05, n anchors, 100,000 iterations of `sinkhorn_log`",
    theirs="3 digits",
    ours="right to 11 digits",
    proof="marginals and the form of P, which have one solution",
)
def test_many_iterations_are_few():
    x, epsilon = scores(12), 0.05
    p = _ours(12, epsilon)(x)
    assert _violation(p, x, epsilon)[0] < 1e-11
    theirs = _theirs(12, epsilon, numItermax=100_000, stopThr=1e-14)(x)
    assert 1e-5 < error(theirs, p) < 1e-2
