"""Our networks beside those of diffsort and difftopk: what is the same, and what theirs miss."""

import contextlib
import io
import itertools
import math

import pytest
import torch

import softorder as so
from softorder.networks import sorting_network
from softorder.relaxations import NetworkMethod

diffsort = pytest.importorskip("diffsort", reason="diffsort is not installed")
with contextlib.redirect_stdout(io.StringIO()):  # it says that torch_sparse is missing
    difftopk = pytest.importorskip("difftopk", reason="difftopk is not installed")

_ROUNDING = {"rtol": 0, "atol": 1e-13}
# Their distribution: our temperature for their steepness.
TEMPERATURE = {
    "logistic": lambda s: 1 / s,
    "cauchy": lambda s: 1 / s,
    "gaussian": lambda s: 1 / s,
    "optimal": lambda s: 1 / s,
    "reciprocal": lambda s: 4 / s,
    "logistic_phi": lambda s: s ** (-1 / (1 - 0.25)),
}
_BIAS = {"optimal": 2e-9, "logistic_phi": 2e-8}  # they add 1e-10 to |b - a|, whatever τ is


def _scores(n, rows=3):
    generator = torch.Generator().manual_seed(n)
    return torch.randn(rows, n, dtype=torch.float64, generator=generator)


def _theirs(kind, x, steepness, distribution="cauchy", art_lambda=0.25):
    """diffsort's values and its matrix, transposed: rows are places."""
    options = {"steepness": steepness, "distribution": distribution, "art_lambda": art_lambda}
    values, columns = diffsort.DiffSortNet(kind, x.shape[-1], **options)(x)
    return values, columns.mT


def _their_rows(layers, x, k, steepness):
    """difftopk's k rows, the largest first, by its own loop over the layers, in float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # its unit matrix has that
    try:
        layers = [[torch.as_tensor(m, dtype=torch.float64) for m in layer[:4]] for layer in layers]
        columns = difftopk.functional.execute_topk(layers, x, k, steepness)[1]
    finally:
        torch.set_default_dtype(before)
    return columns.mT.flip(-2)


def _our_rows(kind, x, k, steepness, descending=True):
    options = {"method": NetworkMethod(kind), "temperature": 1 / steepness}
    return so.soft_permutation(x, k=k, descending=descending, **options)


@pytest.mark.parametrize("distribution", TEMPERATURE)
@pytest.mark.parametrize(
    ("theirs", "ours", "n"),
    [
        *(("odd_even", "odd_even", n) for n in (2, 3, 7, 16, 33)),
        *(("bitonic", ours, n) for ours in ("bitonic", "bitonic_sort") for n in (2, 16, 64)),
    ],
)
def test_sorts_as_diffsort_does(theirs, ours, n, distribution):
    x, method = _scores(n), NetworkMethod(ours, distribution)
    for steepness in (0.5, 10.0, 100.0):
        options = {"method": method, "temperature": TEMPERATURE[distribution](steepness)}
        values, p = _theirs(theirs, x, steepness, distribution)
        bound = {"rtol": 0, "atol": _BIAS.get(distribution, 1e-12)}
        torch.testing.assert_close(so.soft_permutation(x, **options), p, **bound)
        torch.testing.assert_close(so.soft_sort(x, **options), values, **bound)


@pytest.mark.parametrize("art_lambda", [0.25, 0.4, 0.5])
def test_logistic_phi_is_theirs_to_rounding_where_units_agree(art_lambda):
    """With τ = 1 their 1e-10 and ours are one."""
    x, method = _scores(16), NetworkMethod("odd_even", "logistic_phi", art_lambda)
    _, p = _theirs("odd_even", x, 1.0, "logistic_phi", art_lambda)
    torch.testing.assert_close(so.soft_permutation(x, method=method), p, **_ROUNDING)


@pytest.mark.parametrize(("n", "k"), [(8, 1), (16, 3), (16, 5), (32, 7), (64, 3)])
def test_difftopk_selects_by_the_whole_bitonic_sort(n, k):
    """Both are right by the 0-1 principle (test_networks.py); Table 7 of the paper has ours."""
    x = _scores(n)
    theirs = _their_rows(diffsort.networks.bitonic_network(n), x, k, 3.0)
    torch.testing.assert_close(_our_rows("bitonic_sort", x, k, 3.0), theirs, **_ROUNDING)
    apart = (_our_rows("bitonic", x, k, 3.0) - theirs).abs().max()
    deep = 2 ** math.ceil(math.log2(k)) >= n // 2  # then there is nothing to leave out
    assert (apart < 1e-13) if deep else (apart > 1e-3)


@pytest.mark.parametrize("n", [5, 13, 16, 50, 64])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_splitter_networks_are_difftopks(n, k):
    x = _scores(n)
    with contextlib.redirect_stdout(io.StringIO()):
        layers = difftopk.networks.sparse_splitter_selection_network(n, k)
    theirs = _their_rows(layers, x, k, 3.0)
    torch.testing.assert_close(_our_rows("splitter", x, k, 3.0), theirs, **_ROUNDING)


@pytest.mark.parametrize(("n", "k"), [(16, 5), (15, 5)])
def test_difftopk_takes_transposition_from_the_other_end(n, k):
    x = _scores(n)
    theirs = _their_rows(diffsort.networks.odd_even_network(n), x, k, 3.0)
    last = _our_rows("odd_even", x, n, 3.0, descending=False)[:, -k:].flip(-2)
    torch.testing.assert_close(last, theirs, **_ROUNDING)
    apart = (_our_rows("odd_even", x.flip(-1), k, 3.0).flip(-1) - theirs).abs().max()
    assert (apart < 1e-13) == (n % 2 == 0)


def _unsorted(n):
    """How many of all 2^n rows of zeros and ones diffsort's bitonic network leaves unsorted.

    A wire is a set of rows, those in which it has a one: a bit for each.
    """
    rows = 2**n
    wires = [_periodic(2**i, rows) for i in range(n)]
    for a, b, low, high in map(_comparators, diffsort.networks.bitonic_network(n)):
        before = list(wires)
        for i, j, smaller, larger in zip(a, b, low, high, strict=True):
            wires[smaller] = before[i] & before[j] if i != j else before[i]
            if i != j:
                wires[larger] = before[i] | before[j]
    wrong = 0
    for first, second in itertools.pairwise(wires):
        wrong |= first & ~second
    return wrong.bit_count()


def _periodic(length, rows):
    """Zeros and ones in turn, so many of each."""
    bits = ((1 << length) - 1) << length
    width = 2 * length
    while width < rows:
        bits |= bits << width
        width *= 2
    return bits


def _comparators(layer):
    """The wires from which a layer takes its pairs, and to which it sends smaller and larger."""
    split_a, split_b, smaller, larger = layer
    return [m.argmax(1).tolist() for m in (split_a, split_b, smaller.T, larger.T)]


@pytest.mark.parametrize("n", range(2, 24))
def test_the_bitonic_network_of_diffsort_and_the_0_1_principle(n):
    assert _unsorted(n) == (2**18 if n == 22 else 0)


@pytest.mark.parametrize("n", [22, 38, 42, 43, 44, 45, 46])
def test_the_bitonic_network_of_diffsort_does_not_sort_every_length(n):
    """Its comparators are as good as hard here."""
    order = torch.rand(500, n, generator=torch.Generator().manual_seed(n)).argsort(-1)
    values, _ = _theirs("bitonic", order.double(), 1e6)
    assert not torch.equal(values.round().long(), order.sort(-1).values)
    for kind in ("bitonic", "bitonic_sort"):
        assert torch.equal(sorting_network(n, kind).run(order), order.sort(-1).values)
