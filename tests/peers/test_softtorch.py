"""softtorch: soft versions of torch's functions, several methods each."""

import math

import pytest
import torch

import softorder as so
from tests.peers.statements import (
    ALL,
    Peer,
    agreement,
    difference,
    digits,
    gradient,
    scores,
    slopes,
)

PEER = Peer("softtorch", "0.1.1", "softtorch", "is not installed; it wants Python 3.12")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of functorch, in torchopt


@agreement(
    PEER,
    theirs='sort(x, softness=τ, method="softsort", standardize=False).values',
    ours='soft_sort(x, method="softsort", temperature=τ)',
    values=ALL,
    gradients=ALL,
)
def test_sorts():
    st = PEER.load()
    options = {"method": "softsort", "standardize": False}
    return [
        (
            lambda x, t=t: so.soft_sort(x, method="softsort", temperature=t),
            lambda x, t=t: st.sort(x, softness=t, **options).values,
            scores(4, 9),
        )
        for t in (0.1, 1.0)
    ]


@agreement(
    PEER,
    theirs='argsort(x, softness=τ, method="softsort", standardize=False)',
    ours='soft_permutation(x, method="softsort", temperature=τ)',
    values=ALL,
    gradients=ALL,
)
def test_permutations():
    st = PEER.load()
    return (
        lambda x: so.soft_permutation(x, method="softsort", temperature=0.5),
        lambda x: st.argsort(x, softness=0.5, method="softsort", standardize=False),
        scores(9),
    )


@difference(
    PEER,
    'gradient of `rank(x, softness=0.1, method="ot", standardize=False)`',
    theirs="no digit",
    ours='8 digits, `soft_rank(x, method="sinkhorn")`',
    proof="central differences of each side's own values, with steps of 1e-3 and 1e-6",
)
def test_gradient_of_transport():
    st, x = PEER.load(), scores(9)

    def theirs(x):
        return st.rank(x, dim=-1, softness=0.1, method="ot", standardize=False)

    def ours(x):
        return so.soft_rank(x, method="sinkhorn", temperature=0.1)

    for step in (1e-3, 1e-6):
        assert digits(gradient(theirs, x), slopes(theirs, x, step)) < 0.5
    assert digits(slopes(theirs, x, 1e-3), slopes(theirs, x, 1e-4)) > 3  # these are converged
    assert digits(gradient(ours, x), slopes(ours, x)) > 7


@difference(
    PEER,
    "a score of -inf, `topk` and `rank` by default",
    theirs="NaN",
    ours="takes no part",
    proof="the row without it",
)
def test_absent_scores():
    st = PEER.load()
    x = torch.tensor([1.0, 3.0, -math.inf, 2.0], dtype=torch.float64)
    assert st.topk(x, 2).values.isnan().all()
    assert st.rank(x, dim=-1).isnan().all()
    found = so.soft_topk(x, 2, method="neuralsort", temperature=0.1)
    assert found[2] == 0
    rest = so.soft_topk(x[[0, 1, 3]], 2, method="neuralsort", temperature=0.1)
    torch.testing.assert_close(found[[0, 1, 3]], rest)


@difference(
    PEER,
    "default top-2 of (3, 1, 2), as a mask",
    theirs=".964, .044, .991 in float16 as in float32: the largest is not the surest",
    ours="`neuralsort` of the same squashed scores: .996, .058, .946",
    proof="the formula of NeuralSort; theirs puts softened distances into it",
)
def test_default_masks():
    st, x = PEER.load(), torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64)
    for dtype in (torch.float16, torch.float32):
        mask = st.topk(x.to(dtype), 2).indices.sum(0)
        expected = torch.tensor([0.964, 0.0445, 0.991], dtype=dtype)
        torch.testing.assert_close(mask, expected, rtol=0, atol=1e-3)
    z = torch.sigmoid((x - x.mean()) / (x.var(correction=0) + 1e-6).sqrt())  # its standardization
    torch.testing.assert_close(
        st.topk(z, 2, standardize=False).indices, st.topk(x, 2).indices, rtol=0, atol=1e-12
    )
    spread = (z.unsqueeze(-1) - z).abs().sum(-1)
    paper = sum(torch.softmax((c * z - spread) / 0.1, -1) for c in (2, 0))  # n + 1 - 2j
    ours = so.soft_topk(z, 2, method="neuralsort", temperature=0.1)
    torch.testing.assert_close(ours, paper)
    torch.testing.assert_close(
        ours, torch.tensor([0.9964, 0.0578, 0.9458]).double(), rtol=0, atol=1e-3
    )
