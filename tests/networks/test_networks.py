"""Sorting and selection networks: that they sort, how deep they are, how they look."""

import itertools

import numpy as np
import pytest
import torch

from softorder.networks import SELECTION_KINDS, SORTING_KINDS, selection_network, sorting_network

MERGES = ("odd_even_merge", "bitonic", "pairwise")

# Petersen et al. (2022), Table 7: full sort; classic selection, splitter selection for k = 1..8.
TABLE_7 = {
    16: (10, (4, 7, 9, 9, 10, 10, 10, 10), (4, 6, 7, 8, 10, 11, 12, 13)),
    1024: (55, (10, 19, 27, 27, 34, 34, 34, 34), (10, 14, 16, 18, 22, 25, 27, 29)),
    10450: (105, (14, 27, 39, 39, 50, 50, 50, 50), (14, 18, 20, 23, 27, 30, 32, 34)),
    65536: (136, (16, 31, 45, 45, 58, 58, 58, 58), (16, 20, 22, 25, 29, 32, 34, 36)),
}


@pytest.mark.parametrize("kind", MERGES)
@pytest.mark.parametrize("n", TABLE_7)
def test_depths_of_table_7_classic(n, kind):
    full, classic, _ = TABLE_7[n]
    assert sorting_network(n, kind).depth == full
    assert tuple(selection_network(n, k, kind).depth for k in range(1, 9)) == classic


@pytest.mark.parametrize("n", [16, 1024])
def test_depths_of_whole_sorts(n):
    """Selection by a sort is as deep: Table 7, full sort; transposition needs n layers."""
    assert {selection_network(n, k, "bitonic_sort").depth for k in range(1, 9)} == {TABLE_7[n][0]}
    assert sorting_network(n, "odd_even").depth == n
    assert sorting_network(n, "odd_even").size == n * (n - 1) // 2
    assert [selection_network(n, k, "odd_even").depth for k in (1, 2, 3)] == [n - 1, n, n]


@pytest.mark.parametrize("n", TABLE_7)
def test_depths_of_table_7_splitter(n):
    for k, paper in enumerate(TABLE_7[n][2], start=1):
        earlier = 1 if n > 16 and k in (5, 6, 7) else 0  # comparators as early as wires allow
        assert selection_network(n, k, "splitter").depth == paper - earlier


def _zeros_and_ones(n):
    """All 2^n rows, which by the 0-1 principle prove a network."""
    return (torch.arange(2**n).unsqueeze(-1) >> torch.arange(n)) & 1


@pytest.mark.parametrize("kind", SORTING_KINDS)
@pytest.mark.parametrize("n", range(1, 13))
def test_sorts_all_zeros_and_ones(n, kind):
    rows = _zeros_and_ones(n)
    assert torch.equal(sorting_network(n, kind).run(rows), rows.sort(-1).values)


@pytest.mark.parametrize("kind", SELECTION_KINDS)
@pytest.mark.parametrize("n", range(1, 13))
def test_selects_from_all_zeros_and_ones(n, kind):
    rows = _zeros_and_ones(n)
    expected = rows.sort(-1).values
    for k in range(1, n + 1):
        assert torch.equal(selection_network(n, k, kind).run(rows), expected[:, :k]), k


@pytest.mark.parametrize("kind", SELECTION_KINDS)
@pytest.mark.parametrize("n", [13, 32, 64, 100])
@pytest.mark.slow
def test_selects_few_from_few_zeros(n, kind):
    """Rows with at most k zeros prove that a network selects the k smallest: with more of them no
    output can rise.
    """
    k = 3 if n <= 64 else 2
    places = [c for zeros in range(1, k + 1) for c in itertools.combinations(range(n), zeros)]
    rows = torch.ones(len(places), n, dtype=torch.int8)
    for row, zeros in zip(rows, places, strict=True):
        row[list(zeros)] = 0
    expected = rows.sort(-1).values[:, :k]
    assert torch.equal(selection_network(n, k, kind).run(rows), expected)


@pytest.mark.parametrize("kind", SELECTION_KINDS)
@pytest.mark.parametrize("n", [13, 100, 257, 1000])
@pytest.mark.slow
def test_selects_from_random_rows(n, kind):
    generator = torch.Generator().manual_seed(n)
    rows = torch.randint(n, (50, n), generator=generator)
    expected = rows.sort(-1).values
    for k in (1, 2, 5, 8, n // 3):
        assert torch.equal(selection_network(n, k, kind).run(rows), expected[:, :k]), k
    if kind in SORTING_KINDS:
        assert torch.equal(sorting_network(n, kind).run(rows), expected)


@pytest.mark.parametrize("kind", SELECTION_KINDS)
def test_layers_are_pairs_that_share_no_wire(kind):
    network = selection_network(100, 7, kind)
    assert len(network.layers) == network.depth
    assert sum(map(len, network.layers)) == network.size
    for layer in network.layers:
        wires = [wire for pair in layer for wire in pair]
        assert layer
        assert len(set(wires)) == len(wires)
        assert all(0 <= low < high < 100 for low, high in layer)


def test_no_comparator_could_be_earlier():
    busy = np.zeros(300, dtype=int)
    for depth, layer in enumerate(selection_network(300, 6).layers):
        for pair in layer:
            assert busy[list(pair)].max() == depth
            busy[list(pair)] = depth + 1


def test_networks_are_built_once():
    assert sorting_network(20, "bitonic") is sorting_network(20, "bitonic")
    assert selection_network(20, 3) is selection_network(20, 3)


@pytest.mark.parametrize("kind", [*MERGES, "splitter"])
def test_a_long_one(kind):
    """Quadratic work would take minutes; `softorder bench families` measures the seconds."""
    network = selection_network(65536, 8, kind)
    assert network.size < 6 * 65536
    values = torch.randn(65536, generator=torch.Generator().manual_seed(0))
    assert torch.equal(network.run(values), values.sort().values[:8])


def test_draws_every_wire_and_comparator():
    network = selection_network(12, 4)
    lines = network.draw().splitlines()
    assert len(lines) == 12
    assert sum(line.count("●") for line in lines) == 2 * network.size
    assert [lines[wire].split()[-1] for wire in network.outputs] == ["0", "1", "2", "3"]
    for wire in set(range(12)) - set(network.outputs):
        assert lines[wire].split("●")[-1].strip(" │") == ""  # it has ended


def test_a_single_wire():
    network = sorting_network(1)
    assert (network.depth, network.size, network.layers) == (0, 0, ())
    assert network.draw() == "0 ─ 0"


def test_plots():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    axes = selection_network(8, 2).plot()
    assert axes.get_title() == str(selection_network(8, 2))
    comparators = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(comparators) == selection_network(8, 2).size
    matplotlib.pyplot.close(axes.figure)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sorting_network(0), "n must be at least 1, but got 0"),
        (lambda: sorting_network(4, "bitonik"), "did you mean 'bitonic'"),
        (lambda: sorting_network(4, "splitter"), "kind must be one of odd_even, odd_even_merge"),
        (lambda: selection_network(4, 5), "k must be between 1 and 4, but got 5"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_number_that_is_not_whole():
    with pytest.raises(TypeError, match="n must be an int, but got float"):
        sorting_network(4.0)
