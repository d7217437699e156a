"""allRank: losses for ranking. It pins torch below 1.9: its formula stands for it."""

import torch

import softorder as so
from tests.peers.statements import ALL, Peer, agreement, scores

PEER = Peer("allRank", "1.4.3")


def _approx_ndcg(x, relevance, alpha):
    """Qin, Liu and Li (2010), equations 19 to 21: ranks are sums of sigmoids over the others."""
    gaps = x.unsqueeze(-1) - x.unsqueeze(-2)
    others = ~torch.eye(x.shape[-1], dtype=torch.bool)
    rank = 1 + (torch.sigmoid(-alpha * gaps) * others).sum(-1)
    gain = 2**relevance - 1
    places = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    best = (gain.sort(-1, descending=True).values / (1 + places).log2()).sum(-1)
    return -((gain / (1 + rank).log2()).sum(-1) / best).mean()


@agreement(
    PEER,
    theirs="1 + approxNDCGLoss(x, y, alpha=α)",
    ours='NDCGLoss(gain="exponential", method="logistic", temperature=1/α)(x, y)',
    values=ALL,
    gradients=ALL,
)
def test_approximate_ndcg():
    relevance = scores(4, 9, seed=1).abs().mul(2).floor()
    return [
        (
            lambda x, a=alpha: so.losses.NDCGLoss(
                gain="exponential", method="logistic", temperature=1 / a
            )(x, relevance),
            lambda x, a=alpha: 1 + _approx_ndcg(x, relevance, a),
            scores(4, 9),
        )
        for alpha in (0.5, 1.0, 10.0)
    ]
