"""SOFT top-k (Xie et al. 2020) as it is often ported: a fixed number of Sinkhorn iterations."""

import torch

import softorder as so
from tests.oracles.transport import sinkhorn
from tests.peers.statements import ALL, Peer, agreement, difference, error, scores

PEER = Peer("SOFT ports", "formula")


def _share(x, k, epsilon, iterations, zeta=None):
    """The share of every score in the first k of k + 1 anchors, of -x: the k largest."""
    return x.shape[-1] * sinkhorn(-x, k, epsilon, iterations, zeta)[..., :k].sum(-1)


def _rows(x, k, epsilon):
    options = {"method": "sinkhorn", "temperature": epsilon, "descending": True}
    return so.soft_permutation(x, k=k, **options)


def _ours(k, epsilon):
    return lambda x: _rows(x, k, epsilon).sum(-2)


@agreement(
    PEER,
    theirs="sorted SOFT, ε = 0.5, 3,000 iterations",
    ours='soft_permutation(x, k=k, method="sinkhorn", temperature=ε, descending=True).sum(-2)',
    values=ALL,
    gradients=None,
)
def test_converged():
    return _ours(2, 0.5), lambda x: _share(x, 2, 0.5, 3000), scores(3, 8)


def _potentials(x, k, epsilon):
    """ζ of the anchors in our plan: ε log P + cost = ξ + ζ, read off where P is not small."""
    rows = _rows(x, k, epsilon)
    plan = torch.cat([rows, 1 - rows.sum(-2, keepdim=True)], -2)
    anchors = torch.arange(k + 1, dtype=x.dtype).unsqueeze(-1)
    sums = epsilon * plan.log() + (-x.unsqueeze(-2) - anchors) ** 2
    steps = sums.diff(dim=-2)  # ζ_{j+1} - ζ_j, the same for every score
    best = torch.minimum(plan[..., 1:, :], plan[..., :-1, :]).argmax(-1, keepdim=True)
    return torch.nn.functional.pad(steps.gather(-1, best).squeeze(-1).cumsum(-1), (1, 0))


@difference(
    PEER,
    "k = 2, ε = 0.1, stopped after 10 iterations",
    theirs="p off by 0.1 and more",
    ours="right to 9 digits",
    proof="the same iterations from our potentials: 1,000 of them move nothing",
)
def test_ten_iterations():
    x, epsilon = scores(3, 8), 0.1
    p, zeta = _ours(2, epsilon)(x), _potentials(x, 2, epsilon)
    for iterations in (1, 1000):
        assert error(_share(x, 2, epsilon, iterations, zeta), p) < 1e-9
    assert error(_share(x, 2, epsilon, 10), p) > 0.1
