"""Write the minimax-like polynomials behind the elementary functions, for C++ and for Triton.

    python csrc/simd/polynomials.py > csrc/simd/polynomials.hpp        (needs mpmath)
    python csrc/simd/polynomials.py --python > src/softorder/kernels/_polynomials.py

Each polynomial is a Chebyshev fit in 40 digits; the relative error that it reaches is written
beside it, so that a reader can see that no density is limited by its polynomial. In float, the
Mills ratio of C++ is a quotient of two polynomials, which takes fewer steps, and steps that need
not wait for each other.
"""

import sys

from mpmath import (
    atan,
    chebyfit,
    cos,
    erfc,
    exp,
    linspace,
    lu_solve,
    matrix,
    mp,
    mpf,
    nstr,
    pi,
    polyval,
    sqrt,
)

mp.dps = 40
CENTRE = mpf(4)  # t = (a - CENTRE)/(a + CENTRE) maps the half line a >= 0 to [-1, 1)


def power_of_two(f):
    return mpf(2) ** f


def scaled_mills_ratio(t):
    """(a + CENTRE) F(-a)/f(a) of the normal density, smooth up to a = infinity (t = 1)."""
    if t > 1 - mpf(10) ** -30:
        return mpf(1)
    a = CENTRE * (1 + t) / (1 - t)
    if a < 60:
        mills = sqrt(pi / 2) * erfc(a / sqrt(mpf(2))) * exp(a * a / 2)
    else:
        term, mills = 1 / a, mpf(0)
        for odd in range(1, 25, 2):
            mills += term
            term *= -odd / a**2
    return mills * (a + CENTRE)


def arctan_over_root(w):
    """atan(sqrt(w))/sqrt(w), so that atan(y) = y P(y²)."""
    return mpf(1) if w == 0 else atan(sqrt(w)) / sqrt(w)


FITS = [
    ("kExp2", power_of_two, (-0.5, 0.5), {"float": 6, "double": 11}),
    ("kMills", scaled_mills_ratio, (-1, 1), {"float": 10, "double": 25}),
    ("kArctan", arctan_over_root, (0, 1), {"float": 9, "double": 20}),
]


TOP, BOTTOM = 4, 5  # degrees of the quotient
REACH = mpf(14)  # from here on float has f = 0


def mills_quotient():
    """P, Q with P(a)/Q(a) = F(-a)/f(a) at Chebyshev's points of t and Q(0) = 1; and the error."""
    count, last = TOP + BOTTOM + 1, (REACH - CENTRE) / (REACH + CENTRE)

    def place(t):
        return CENTRE * (1 + t) / (1 - t)

    def mills(t):
        return scaled_mills_ratio(t) / (place(t) + CENTRE)

    points = [-1 + (last + 1) * (1 - cos(pi * (i + mpf("0.5")) / count)) / 2 for i in range(count)]
    rows = [[place(t) ** j for j in range(TOP + 1)] for t in points]
    for row, t in zip(rows, points, strict=True):
        row += [-mills(t) * place(t) ** j for j in range(1, BOTTOM + 1)]
    found = list(lu_solve(matrix(rows), matrix([mills(t) for t in points])))
    top, bottom = found[TOP::-1], [*found[:TOP:-1], mpf(1)]
    grid = linspace(mpf(-1), last, 400)
    error = max(
        abs(polyval(top, place(t)) / polyval(bottom, place(t)) / mills(t) - 1) for t in grid
    )
    return top, bottom, error


def relative_error(function, coefficients, low, high):
    points = linspace(mpf(low), mpf(high) - mpf(10) ** -9, 400)
    return max(abs(polyval(coefficients, x) / function(x) - 1) for x in points)


def write_coefficients(scalar, name, coefficients):
    suffix, digits = ("f", 10) if scalar == "float" else ("", 20)
    print(f"  static constexpr {scalar} {name}[] = {{")
    for c in coefficients:
        print(f"      {nstr(c, digits, strip_zeros=False)}{suffix},")
    print("  };")


def write_cpp():
    print("// Made by polynomials.py; do not edit. Highest power first.")
    print("#pragma once\n\nnamespace softorder {\n")
    print("template <class T> struct Polynomials;\n")
    for scalar in ("float", "double"):
        print(f"template <> struct Polynomials<{scalar}> {{")
        if scalar == "double":
            print(f"  static constexpr double kMillsCentre = {nstr(CENTRE, 3)};")
        for name, function, (low, high), degrees in FITS:
            if (scalar, name) == ("float", "kMills"):
                top, bottom, error = mills_quotient()
                print(f"  // relative error of their quotient {nstr(error, 2)}")
                write_coefficients(scalar, "kMillsTop", top)
                write_coefficients(scalar, "kMillsBottom", bottom)
                continue
            coefficients = chebyfit(function, [low, high], degrees[scalar] + 1)
            error = relative_error(function, coefficients, low, high)
            print(f"  // relative error {nstr(error, 2)}")
            write_coefficients(scalar, name, coefficients)
        print("};\n")
    print("}  // namespace softorder")


def write_python():
    print('"""Made by csrc/simd/polynomials.py; do not edit. Highest power first."""\n')
    print(f"MILLS_CENTRE = {nstr(CENTRE, 3)}")
    for name, function, (low, high), degrees in FITS:
        if name == "kExp2":
            continue
        for scalar, degree in degrees.items():
            coefficients = chebyfit(function, [low, high], degree + 1)
            error = relative_error(function, coefficients, low, high)
            bits = {"float": 32, "double": 64}[scalar]
            print(f"# relative error {nstr(error, 2)}")
            print(f"{name[1:].upper()}_{bits} = (")
            for c in coefficients:
                print(f"    {float(c)!r},")
            print(")")


if __name__ == "__main__":
    write_python() if "--python" in sys.argv else write_cpp()
