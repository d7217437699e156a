"""Every density as the oracles know it: its lower tail F(-a) for a >= 0, nothing else.

The tail is what can be computed without cancellation; F is the tail or one minus the tail.
`student` (two degrees of freedom) stands for the density that a user brings along.
"""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
from scipy import special


@dataclass(frozen=True)
class Density:
    tail: Callable  # a >= 0 -> F(-a), numpy
    log_tail: Callable  # a >= 0 -> log F(-a), numpy
    pdf: Callable  # a >= 0 -> f(a), numpy
    exact_tail: Callable  # a >= 0 -> F(-a), mpmath


def _student_tail(a):
    hypotenuse = np.hypot(a, np.sqrt(2))
    return 1 / hypotenuse / (hypotenuse + a)


def _exact_student_tail(a):
    hypotenuse = mpmath.sqrt(a * a + 2)
    return 1 / (hypotenuse * (hypotenuse + a))


DENSITIES = {
    "laplace": Density(
        tail=lambda a: 0.5 * np.exp(-a),
        log_tail=lambda a: -a - np.log(2),
        pdf=lambda a: 0.5 * np.exp(-a),
        exact_tail=lambda a: mpmath.exp(-a) / 2,
    ),
    "logistic": Density(
        tail=lambda a: special.expit(-a),
        log_tail=lambda a: special.log_expit(-a),
        pdf=lambda a: special.expit(a) * special.expit(-a),
        exact_tail=lambda a: mpmath.exp(-a) / (1 + mpmath.exp(-a)),
    ),
    "normal": Density(
        tail=lambda a: special.ndtr(-a),
        log_tail=lambda a: special.log_ndtr(-a),
        pdf=lambda a: np.exp(-0.5 * a * a) / np.sqrt(2 * np.pi),
        exact_tail=lambda a: mpmath.erfc(a / mpmath.sqrt(2)) / 2,
    ),
    "cauchy": Density(
        tail=lambda a: np.arctan2(1, a) / np.pi,
        log_tail=lambda a: np.log(np.arctan2(1, a) / np.pi),
        pdf=lambda a: 1 / (np.pi * (1 + a * a)),
        exact_tail=lambda a: mpmath.atan2(1, a) / mpmath.pi,
    ),
    "uniform": Density(
        tail=lambda a: np.maximum(0.5 - a, 0),
        log_tail=lambda a: np.log(np.maximum(0.5 - a, 0)),
        pdf=lambda a: np.where(a < 0.5, 1.0, 0.0),
        exact_tail=lambda a: max(mpmath.mpf(0.5) - a, mpmath.mpf(0)),
    ),
    "student": Density(
        tail=_student_tail,
        log_tail=lambda a: np.log(_student_tail(a)),
        pdf=lambda a: np.hypot(a, np.sqrt(2)) ** -3.0,
        exact_tail=_exact_student_tail,
    ),
}

BUILT_IN = tuple(name for name in DENSITIES if name != "student")
