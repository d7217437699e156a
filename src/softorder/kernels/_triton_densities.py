"""The built-in densities as Triton functions, by their numbers.

Every function takes tensors of float32 or float64 and stays in that dtype. The uniform density has
its support at [0, 1], as in densities/uniform.py: its middle is 1/2.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _polynomials

LAPLACE = tl.constexpr(0)
LOGISTIC = tl.constexpr(1)
NORMAL = tl.constexpr(2)
CAUCHY = tl.constexpr(3)
UNIFORM = tl.constexpr(4)

_CENTRE = tl.constexpr(_polynomials.MILLS_CENTRE)
_MILLS_32 = tl.constexpr(_polynomials.MILLS_32)
_MILLS_64 = tl.constexpr(_polynomials.MILLS_64)
_ARCTAN_32 = tl.constexpr(_polynomials.ARCTAN_32)
_ARCTAN_64 = tl.constexpr(_polynomials.ARCTAN_64)
_TERMS = tl.constexpr(
    tuple(
        len(terms)
        for terms in (
            _polynomials.MILLS_32,
            _polynomials.MILLS_64,
            _polynomials.ARCTAN_32,
            _polynomials.ARCTAN_64,
        )
    )
)
_EDGE_32, _EDGE_64 = tl.constexpr(16 * 2.0**-23), tl.constexpr(16 * 2.0**-52)
_PI = tl.constexpr(3.141592653589793)
_HEIGHT = tl.constexpr(0.3989422804014327)  # of the normal density
_LOG_HEIGHT = tl.constexpr(-0.9189385332046727)


@triton.jit
def middle(density: tl.constexpr):
    """Where F is 1/2."""
    return 0.5 if density == UNIFORM else 0.0


@triton.jit
def values(u, density: tl.constexpr):
    """F(-a), f(a) and -f'(a) with a the distance of u from the middle.

    The uniform density has the square of its tail in the place of the last, which tells how its
    scores are spread.
    """
    if density == UNIFORM:
        a = tl.where(u < 0.5, u, 1.0 - u)
        tail = tl.where(a <= 0.0, 0.0, a)
        return tail, tl.where(a > 0.0, 1.0, 0.0).to(u.dtype), tail * tail
    else:
        return _values_at(tl.abs(u), density)


@triton.jit
def pdf(u, density: tl.constexpr):
    """f(u) for a gradient: what rounding alone has put inside the uniform density is not there."""
    tail, f, _ = values(u, density)
    if density == UNIFORM:
        edge = _EDGE_32 if u.dtype == tl.float32 else _EDGE_64
        f = tl.where(tail > edge, f, 0.0)
    return f


@triton.jit
def _values_at(a, density: tl.constexpr):
    if density == LAPLACE:
        tail = 0.5 * tl.exp(-a)
        return tail, tail, tail
    elif density == LOGISTIC:
        e = tl.exp(-a)
        tail = e / (1.0 + e)
        pdf = tail - tail * tail
        return tail, pdf, pdf * (1.0 - 2.0 * tail)
    elif density == NORMAL:
        a = tl.where(a > 1e6, 1e6, a)  # f is 0 long since, and a f is not NaN
        pdf = tl.exp(-0.5 * a * a) * _HEIGHT
        return pdf * mills(a), pdf, a * pdf
    else:
        inner = a < 1.0
        small = tl.where(inner, a, 1.0 / tl.where(inner, 1.0, a))
        angle = arctan(small) / _PI
        height = 1.0 / (1.0 + small * small)  # of 1/(1 + a²), without overflow
        pdf = tl.where(inner, height, small * small * height) / _PI
        return tl.where(inner, 0.5 - angle, angle), pdf, 2.0 * small * height * pdf


@triton.jit
def log_ratio(a, more, density: tl.constexpr):
    """log F(-(a + more))/F(-a) without the two logarithms, which may be huge; a, a + more >= 0."""
    if density == LAPLACE:
        return -more
    elif density == LOGISTIC:
        return tl.log((1.0 + tl.exp(-a)) / (1.0 + tl.exp(-(a + more)))) - more
    elif density == NORMAL:
        return tl.log(mills(a + more) / mills(a)) - more * (a + 0.5 * more)
    else:
        return tl.log(_values_at(a + more, density)[0] / _values_at(a, density)[0])


@triton.jit
def rate(a, density: tl.constexpr):
    """f(a)/F(-a), for a >= 0; not for the uniform density."""
    if density == LAPLACE:
        return tl.zeros_like(a) + 1.0
    elif density == LOGISTIC:
        return 1.0 / (1.0 + tl.exp(-a))
    elif density == NORMAL:
        return 1.0 / mills(a)
    else:
        tail, pdf, _ = _values_at(a, density)
        return pdf / tail


@triton.jit
def quantile_of_tail(share, density: tl.constexpr):
    """The a with F(-a) = share, for 0 < share <= 1/2; for the uniform density share itself."""
    if density == LAPLACE:
        return -tl.log(2.0 * share)
    elif density == LOGISTIC:
        return tl.log(1.0 - share) - tl.log(share)
    elif density == NORMAL:
        a = normal_quantile(share)
        for _ in tl.static_range(3):  # Newton's steps on log F
            ratio = mills(a)
            a += (tl.log(ratio / share) - 0.5 * a * a + _LOG_HEIGHT) * ratio
        return a
    elif density == CAUCHY:
        # cot(πq) by its series, then Newton's steps on F; a sine would need memory for large angles
        y = share * _PI
        square = y * y
        a = 1.0 / y - y * (1.0 / 3 + square * (1.0 / 45 + square * (2.0 / 945)))
        for _ in tl.static_range(2):
            tail, pdf, _ = _values_at(a, density)
            a += (tail - share) / pdf
        return a
    else:
        return share


@triton.jit
def quantile(share, density: tl.constexpr):
    """F^-1(share), for 0 < share < 1; the uniform density has its support at [0, 1]."""
    if density == UNIFORM:
        return share
    else:
        a = quantile_of_tail(tl.minimum(share, 1.0 - share), density)
        return tl.where(share < 0.5, -a, a)


@triton.jit
def normal_quantile(share):
    """The a with a normal tail of `share` <= 1/2, to 5e-4: Abramowitz & Stegun 26.2.23."""
    t = tl.sqrt(-2.0 * tl.log(share))
    above = 2.515517 + t * (0.802853 + t * 0.010328)
    return t - above / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))


@triton.jit
def mills(a):
    """F(-a)/f(a) of the normal density, for a >= 0."""
    shrunk = 1.0 / (a + _CENTRE)
    t = 1.0 - shrunk * (2.0 * _CENTRE)
    if a.dtype == tl.float64:
        return shrunk * _horner(t, _MILLS_64, _TERMS[1])
    else:
        return shrunk * _horner(t, _MILLS_32, _TERMS[0])


@triton.jit
def arctan(y):
    """For 0 <= y <= 1."""
    if y.dtype == tl.float64:
        return y * _horner(y * y, _ARCTAN_64, _TERMS[3])
    else:
        return y * _horner(y * y, _ARCTAN_32, _TERMS[2])


@triton.jit
def _horner(t, coefficients: tl.constexpr, count: tl.constexpr):
    value = tl.zeros_like(t) + coefficients[0]
    for i in tl.static_range(1, count):
        value = value * t + coefficients[i]
    return value
