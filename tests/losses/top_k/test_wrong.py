"""The messages of top_k_cross_entropy for wrong arguments."""

import math

import pytest
import torch

import softorder as so

_loss = so.losses.top_k_cross_entropy


@pytest.mark.parametrize(
    ("p_k", "options", "error", "message"),
    [
        ([0.5, 0.6], {}, ValueError, r"p_k must sum to 1 over k, but got a sum of 1\.1"),
        ([1.5, -0.5], {}, ValueError, r"p_k must hold numbers >= 0, but got -0\.5"),
        ([math.nan, 1], {}, ValueError, r"p_k must hold numbers >= 0"),
        ([], {}, ValueError, r"p_k.*last axis.*\(0,\)"),
        ("half", {}, TypeError, r"p_k must be a tensor or a list of numbers, but got 'half'"),
        (torch.tensor([1, 0]), {}, TypeError, r"p_k must hold real numbers.*int64"),
        (torch.tensor([[1.0]] * 3), {}, ValueError, r"p_k.*per class, \(4, K\).*\(3, 1\)"),
        (torch.tensor([[1.0]] * 3), {"per_sample": True}, ValueError, r"p_k per sample.*\(2,\)"),
        ([0, 0, 0, 0, 1.0], {}, ValueError, r"no weight beyond k = 4.*at k = 5"),
        ([0, 0, 1.0], {"m": 2}, ValueError, r"m must be at least 3, but got 2"),
        ([1.0], {"top1": "sotfmax"}, ValueError, r"top1.*did you mean 'softmax'"),
        ([1.0], {"method": "lapsum"}, ValueError, r"method.*did you mean 'laplace'"),
        ([1.0], {"method": "permutahedron"}, ValueError, r"method must be one of.*permutahedron"),
        ([1.0], {"temperature": 0}, ValueError, r"temperature must be finite and > 0, but got 0"),
        ([1.0], {"weight": torch.ones(3)}, ValueError, r"weight.*\(4,\), but got \(3,\)"),
        ([1.0], {"weight": [1, 2]}, TypeError, r"weight must be a tensor or None.*list"),
        ([1.0], {"label_smoothing": 2}, ValueError, r"label_smoothing.*between 0 and 1.*2"),
        ([1.0], {"reduction": "max"}, ValueError, r"reduction must be.*'max'"),
    ],
)
def test_wrong_arguments(p_k, options, error, message):
    with pytest.raises(error, match=message):
        _loss(torch.zeros(2, 4), torch.tensor([0, 1]), p_k, **options)


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (torch.tensor([0, 4]), ValueError, r"target must be between 0 and 3.*-100, but got 4"),
        (torch.tensor([0, 1, 2]), ValueError, r"target must have the shape \(2,\).*\(3,\)"),
        (torch.tensor([0.0, 1.0]), TypeError, r"target must hold integers.*float32"),
        ([0, 1], TypeError, r"target must be a tensor of integers.*list"),
    ],
)
def test_wrong_targets(target, error, message):
    with pytest.raises(error, match=message):
        _loss(torch.zeros(2, 4), target, [0.5, 0.5])
