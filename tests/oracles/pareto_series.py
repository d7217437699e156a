"""The inclusion probabilities of Pareto sampling as a power series, by computer algebra.

π_i = ∫∫ e^(K(s+w) - K(s) - kw) [s_i Σ_j s_j σ(-u_j-s) + s_i (1-s_i) σ(-u_i-s)] ds dt/2π,  w = it,
with s = e a, w = e b, e = V^-½, and K the cumulant function of a sum of Bernoulli(p_j) numbers of
mean k. The ratios of its cumulants to V are r3, r4, …; all series are cut after e^order.
"""

from math import factorial, prod

from sympy import QQ, ring

ORDER = 6
_NAMES = ["e", "a", "b", "p", *(f"r{j}" for j in range(3, ORDER + 3))]
_RING, e, a, b, p, *_ratios = ring(_NAMES, QQ)
_E, _A, _B, _P = range(4)  # places of exponents
_ONE = _RING(1)
RATIO = {2: _ONE, **dict(enumerate(_ratios, 3))}


def _cut(series):
    return _RING.from_dict({place: c for place, c in series.items() if place[_E] <= ORDER})


def _product(*factors):
    result = _ONE
    for factor in factors:
        result = _cut(result * factor)
    return result


def _derivatives():
    """Those of σ, as polynomials of p = σ."""
    found = [p]
    while len(found) <= ORDER + 2:
        found.append(found[-1].diff(p) * (p - p**2))
    return found


_SIGMOID = _derivatives()


def _sigmoid(x):
    """σ(u + e x) where σ(u) = p."""
    return _cut(sum(_SIGMOID[r] * (e * x) ** r / factorial(r) for r in range(ORDER + 1)))


def _summed(series):
    """Σ_j of a polynomial of p_j, over V: Σ_j σ^(r)(u_j) is the cumulant of order r + 1."""
    result = _RING(0)
    while series:
        degree = max(place[_P] for place in series)
        highest = _RING.from_dict(
            {(*m[:_P], 0, *m[_P + 1 :]): c for m, c in series.items() if m[_P] == degree}
        )
        basis = _SIGMOID[degree - 1]
        highest = highest / basis.coeff(p**degree)
        result += highest * RATIO[degree]
        series = series - highest * basis
    return result


def _mean(series):
    """E[a^m (it)^l] = (-1)^l m!/(m-l)! E[a^(m-l)], a standard normal."""
    result = _RING(0)
    for place, c in series.items():
        m, left = place[_A], place[_A] - place[_B]
        if left >= 0 and left % 2 == 0:
            moment = (-1) ** place[_B] * factorial(m) // factorial(left) * prod(range(1, left, 2))
            result += _RING.from_dict({(place[_E], 0, 0, *place[_P:]): c * moment})
    return result


def inclusion():
    """π_i as {power of e: polynomial of p and the ratios}; e⁰ has p itself."""
    exponent = sum(
        RATIO[r] * ((a + b) ** r - a**r) * e ** (r - 2) / factorial(r) for r in range(3, ORDER + 3)
    )
    exponential, power = _ONE, _ONE
    for m in range(1, ORDER + 1):
        power = _product(power, exponent) / m
        exponential += power
    drawn, below = _sigmoid(a + b), _ONE - _sigmoid(a)
    others = _product(drawn, _summed(_product(drawn, below)))
    own = _product(e**2, drawn, _ONE - drawn, below)
    series = _mean(_product(exponential, others + own))
    orders = {}
    for place, c in series.items():
        term = _RING.from_dict({(0, *place[1:]): c})
        orders[place[_E]] = orders.get(place[_E], _RING(0)) + term
    return orders
