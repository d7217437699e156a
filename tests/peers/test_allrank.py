"""allRank: losses for ranking. It pins torch below 1.9: its formula stands for it."""

import torch

import softorder as so
from tests.peers.statements import Peer, agreement, digits, gradient, scores

PEER = Peer("allRank", "1.4.3")
_RELEVANCE = scores(4, 9, seed=1).abs().mul(2).floor()


def _approx_ndcg(x, relevance, alpha, discounts=torch.float32):
    """Qin, Liu and Li (2010), equations 19 to 21: ranks are sums of sigmoids over the others.

    allRank has the discounts of the best order in float32, whatever the scores are.
    """
    gaps = x.unsqueeze(-1) - x.unsqueeze(-2)
    others = ~torch.eye(x.shape[-1], dtype=torch.bool)
    rank = 1 + (torch.sigmoid(-alpha * gaps) * others).sum(-1)
    gain = 2**relevance - 1
    places = torch.arange(1, x.shape[-1] + 1, dtype=discounts)
    best = (gain.sort(-1, descending=True).values / (1 + places).log2()).sum(-1)
    return -((gain / (1 + rank).log2()).sum(-1) / best).mean()


def _ours(alpha):
    options = {"gain": "exponential", "method": "logistic", "temperature": 1 / alpha}
    return lambda x: so.losses.NDCGLoss(**options)(x, _RELEVANCE)


def _theirs(alpha, discounts=torch.float32):
    return lambda x: 1 + _approx_ndcg(x, _RELEVANCE, alpha, discounts)


@agreement(
    PEER,
    theirs="1 + approxNDCGLoss(x, y, alpha=α)",
    ours='NDCGLoss(gain="exponential", method="logistic", temperature=1/α)(x, y)',
    values=8,
    gradients=8,
    note="theirs has its discounts in float32; ours agrees to all digits with float64 ones",
)
def test_approximate_ndcg():
    x = scores(4, 9)
    for alpha in (0.5, 1.0, 10.0):
        exact = _theirs(alpha, torch.float64)
        assert digits(_ours(alpha)(x), exact(x)) > 12
        assert digits(gradient(_ours(alpha), x), gradient(exact, x)) > 12
    return [(_ours(alpha), _theirs(alpha), x) for alpha in (0.5, 1.0, 10.0)]
