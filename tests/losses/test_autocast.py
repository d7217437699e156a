"""Under autocast a loss of narrow scores is float32, as torch.nn.functional.cross_entropy is."""

from functools import partial

import pytest
import torch
from torch import nn

import softorder as so

_CLASSES = torch.tensor([0, 4, 2])
_K_HOT = torch.tensor([[1.0, 1, 0, 0, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]])
_PLACES = torch.tensor([[5, 4, 0, 1, 3, 2], [0, 1, 2, 3, 4, 5], [2, 0, 4, 1, 3, 5]])
#: what a loss is made of, and compares with, where that is not nothing and relevances
_MADE_OF = {
    "FenchelYoungLoss": (2,),
    "PrecisionAtK": (2,),
    "RecallAtK": (2,),
    "PerturbedFenchelYoungLoss": (2,),
    "TopKCrossEntropyLoss": ([0.5, 0.5],),
}
_TARGETS = {"PermutationCrossEntropyLoss": _PLACES} | dict.fromkeys(
    (
        "SmoothTopKLoss",
        "TopKCrossEntropyLoss",
        "TopKEntropyLoss",
        "TopKHingeLoss",
        "TruncatedTopKEntropyLoss",
    ),
    _CLASSES,
)
_LOSSES = [
    name
    for name in so.losses.__all__
    if isinstance(getattr(so.losses, name), type)
    and issubclass(getattr(so.losses, name), nn.Module)
    and name not in ("MultiKLoss", "QuantileLoss", "RankHuberLoss", "TrimmedLoss")
]
_OF_BATCHES = {  # whose target is of the kind of the prediction, and which are one number
    "MultiKLoss": lambda: partial(so.losses.MultiKLoss((1, 2)), nn.Identity()),
    "QuantileLoss": so.losses.QuantileLoss,
    "RankHuberLoss": so.losses.RankHuberLoss,
    "TrimmedLoss": so.losses.TrimmedLoss,
    "TrimmedLoss of a criterion": lambda: so.losses.TrimmedLoss(
        criterion=lambda x, y: (x - y).abs()
    ),
}


@pytest.mark.parametrize("name", _LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_loss_has_the_dtype_of_torchs(name, reduction):
    scores = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    options = {"k": 3} if name.startswith(("TopKE", "TopKH", "Trunc", "SmoothT", "SmoothR")) else {}
    loss = getattr(so.losses, name)(*_MADE_OF.get(name, ()), **options, reduction=reduction)
    target = _TARGETS.get(name, _K_HOT)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for enabled in (True, False):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                ours = loss(scores.to(dtype), target)
                torchs = nn.functional.cross_entropy(scores.to(dtype), _CLASSES)
            assert ours.dtype == torchs.dtype


@pytest.mark.parametrize("make", _OF_BATCHES.values(), ids=_OF_BATCHES)
def test_a_loss_of_a_batch_has_the_dtype_of_torchs(make):
    scores, loss = torch.randn(3, 6, generator=torch.Generator().manual_seed(0)), make()
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x, y = scores.to(dtype), _K_HOT.to(dtype)
        for enabled in (True, False):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                ours, torchs = loss(x, y), nn.functional.cross_entropy(x, _CLASSES)
            assert ours.dtype == torchs.dtype
            torch.testing.assert_close(ours.float(), loss(x.float(), y.float()), rtol=0.02, atol=0)


def test_residuals_are_squared_in_float32_under_autocast():
    """300² is beyond float16."""
    x, y = torch.full((4,), 300.0, dtype=torch.float16), torch.zeros(4, dtype=torch.float16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for make in (so.losses.TrimmedLoss, so.losses.QuantileLoss):
            assert make()(x, y).item() == pytest.approx(90_000, rel=1e-3)
