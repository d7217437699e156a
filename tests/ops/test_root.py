"""The root of a function of one number for each row."""

import math

import torch

from softorder.ops._root import root

_LOW, _HIGH = -30.0, 30.0


def _found(rise, rows, tolerance=1e-12, going=True, most=60):
    asked = []

    def counted(t):
        asked.append(t)
        return rise(t)

    ends = [torch.full((rows,), end, dtype=torch.float64) for end in (_LOW, _HIGH)]
    start, on = torch.zeros(rows, dtype=torch.float64), torch.full((rows,), going)
    return root(counted, start, *ends, on, tolerance, most), len(asked)


def test_finds_roots_of_curves_in_a_dozen_steps():
    at = torch.linspace(-20, 20, 41, dtype=torch.float64)
    for curve in (
        lambda t: t - at,
        lambda t: (t - at) + (t - at) ** 3,
        lambda t: 1 - torch.exp(at - t),  # far below, it is beyond all bounds
        lambda t: torch.exp(t - at) - 1,
        lambda t: torch.where(t > at, 0.2, 5.0) * (t - at),  # a kink in the root
    ):
        found, steps = _found(curve, len(at))
        torch.testing.assert_close(found.place, at, rtol=0, atol=1e-11)
        assert steps <= 24
        assert (found.value.abs() < 1e-9).all()


def test_stops_at_a_jump_and_shows_the_value_beside_it():
    at = torch.tensor([-3.0, 0.3, 11.0], dtype=torch.float64)
    found, _ = _found(lambda t: torch.where(t > at, 2.0, -1.0).double(), 3, tolerance=1e-6)
    torch.testing.assert_close(found.place, at, rtol=0, atol=1e-5)
    assert (found.value.abs() >= 1).all()


def test_a_row_does_not_depend_on_the_others():
    at = torch.linspace(-20, 20, 41, dtype=torch.float64)
    both, _ = _found(lambda t: torch.exp(t - at) - 1, len(at), tolerance=1e-3)
    for row in (0, 17, 40):
        alone, _ = _found(lambda t, row=row: torch.exp(t - at[row]) - 1, 1, tolerance=1e-3)
        assert alone.place == both.place[row]


def test_rows_without_a_root_end_at_an_end_and_others_are_not_moved():
    never, _ = _found(lambda t: torch.full_like(t, -math.inf), 2)
    assert (never.place == _HIGH).all()
    still, steps = _found(lambda t: t - 5, 2, going=False)
    assert (still.place == 0).all()
    assert steps == 1
