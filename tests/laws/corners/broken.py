"""Solvers that break promises on purpose: each changes one part of what they give, row by row."""

import math

import torch


def _own(scores):
    """A number for each row, so that no row is wrong in the way of the one it is compared with."""
    return 0.01 * torch.arange(1, len(scores) + 1, dtype=scores.dtype)


def _of_rows(numbers, value):
    return numbers.view(-1, *[1] * (value.dim() - 1))


def _moved(scores):
    """0, with a derivative by every finite score."""
    finite = torch.where(scores.isfinite(), scores, 0.0)
    return (finite - finite.detach()).sum(-1)


def _value(change):
    def breaker(solve):
        def wrong(scores, k, temperature):
            value = solve(scores, k, temperature)
            return change(value, _of_rows(_own(scores), value))

        return wrong

    return breaker


def _derivative(extra):
    """Adds what is 0 itself, but has a derivative of some order."""

    def breaker(solve):
        def wrong(scores, k, temperature):
            value = solve(scores, k, temperature)
            return value + _of_rows(extra(_moved(scores), _own(scores)), value)

        return wrong

    return breaker


BREAKERS = {
    "value": (
        _value(lambda value, own: value + own),
        _value(lambda value, own: value.nan_to_num(neginf=-1.0) + own),
        _value(lambda value, own: value * math.nan),
    ),
    "first": (
        _derivative(lambda moved, own: own * moved),
        _derivative(lambda moved, own: math.nan * moved),
    ),
    "second": (
        _derivative(lambda moved, own: own * moved.square()),
        _derivative(lambda moved, own: math.nan * moved.square()),
    ),
}
