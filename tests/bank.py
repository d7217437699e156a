"""The bank of rows on which accuracy is promised, and the k and temperature that go with them."""

import numpy as np

TEMPERATURES = (1e-6, 1e-3, 1.0, 1e3, 1e6)


def _modes(count, n, rng):
    return 1e3 * rng.integers(count, size=n) + rng.standard_normal(n)


def _outlier(n, rng):
    row = rng.standard_normal(n)
    row[rng.integers(n)] = 1e30
    return row


_FAMILIES = {
    "normal": lambda n, rng: rng.standard_normal(n),
    "uniform": lambda n, rng: rng.random(n),
    "exponential": lambda n, rng: rng.standard_exponential(n),
    "cauchy": lambda n, rng: rng.standard_cauchy(n),
    "two_modes": lambda n, rng: _modes(2, n, rng),
    "five_modes": lambda n, rng: _modes(5, n, rng),
    "ties": lambda n, rng: rng.integers(4, size=n) / 2.0,
    "all_equal": lambda n, rng: np.full(n, 0.7),
    "geometric": lambda n, rng: rng.permutation(np.geomspace(1e-6, 1e6, n)),
    "outlier": _outlier,
    "shifted": lambda n, rng: rng.standard_normal(n) + 1e6,
}
FAMILIES = tuple(_FAMILIES)


def row(family, n, dtype=np.float64):
    """A row of n scores, always the same one, rounded to dtype."""
    rng = np.random.default_rng([FAMILIES.index(family), n])
    return _FAMILIES[family](n, rng).astype(dtype)


def ks(n):
    """The k of the bank that are possible for n scores."""
    return tuple(
        dict.fromkeys(min(max(k, 0.0), n) for k in (1e-3, 1, n / 100, n / 2, n - 1, n - 1e-3))
    )


def problems(families, n, dtype=np.float64, temperatures=TEMPERATURES):
    """Every (family, k, temperature): these labels, scores (rows, n), k and temperature (rows,)."""
    labels = [(f, k, t) for f in families for k in ks(n) for t in temperatures]
    rows = {family: row(family, n, dtype) for family in families}
    scores = np.stack([rows[family] for family, _, _ in labels])
    return labels, scores, np.array([k for _, k, _ in labels]), np.array([t for _, _, t in labels])
