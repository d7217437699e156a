"""The shortlist finds what looking at every distance finds."""

import pytest
import torch

import softorder as so
from softorder.nn.functional import nearest as module
from softorder.nn.functional.neighbours import _euclidean

SHAPES = {
    "normal": lambda g, n, d: torch.randn(n, d, generator=g),
    "clusters": lambda g, n, d: (
        torch.randint(3, (n, d), generator=g) + 1e-3 * torch.randn(n, d, generator=g)
    ),
    "ties": lambda g, n, d: torch.randint(2, (n, d), generator=g).float(),
    "far away": lambda g, n, d: 1e4 + torch.randn(n, d, generator=g),
    "an outlier": lambda g, n, d: (
        torch.randn(n, d, generator=g) + 1e6 * (torch.arange(n) == 0).unsqueeze(1)
    ),
    "tiny": lambda g, n, d: 1e-25 * torch.randn(n, d, generator=g),
    "huge": lambda g, n, d: 1e25 * torch.randn(n, d, generator=g),
}


def _points(shape, n, d, seed, dtype=torch.float32):
    return SHAPES[shape](torch.Generator().manual_seed(seed), n, d).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("d", [1, 5, 64])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_nearest_are_those_of_all_distances(shape, d, dtype):
    queries, templates = _points(shape, 70, d, 0, dtype), _points(shape, 500, d, 1, dtype)
    lengths, indices = module.nearest(queries, templates, 7, _euclidean, 64)
    expected = _euclidean(queries, templates)
    # Bit by bit the same lengths; of equal ones, any may be named, but none twice.
    assert torch.equal(lengths, expected.topk(7, largest=False).values)
    assert torch.equal(lengths, expected.gather(1, indices))
    assert all(len(set(row)) == 7 for row in indices.tolist())


def test_most_queries_need_no_second_look(monkeypatch):
    looked = []
    plain = module.scan
    monkeypatch.setattr(module, "scan", lambda q, *rest: looked.append(len(q)) or plain(q, *rest))
    queries, templates = _points("normal", 200, 16, 0), _points("normal", 3000, 16, 1)
    module.nearest(queries, templates, 5, _euclidean, 256)
    assert sum(looked) <= 2


def test_a_template_that_the_shortlist_misses_is_found():
    """Far from the centre the bounds are useless: all of these differ by less than their error."""
    templates = torch.cat([1e6 + torch.arange(500.0), torch.tensor([-5e8])]).unsqueeze(1)
    lengths, indices = module.nearest(templates[7:8] + 0.25, templates, 3, _euclidean, 64)
    assert indices.tolist() == [[7, 8, 6]]
    assert lengths.tolist() == [[0.25, 0.75, 1.25]]


def test_no_shortlist_where_matrix_products_are_not_exact_enough(monkeypatch):
    monkeypatch.setattr(module, "_shortlist", lambda *_: pytest.fail("made a shortlist"))
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    templates = _points("normal", 500, 4, 0)
    assert (
        module.nearest(templates, templates, 1, _euclidean, 64)[1]
        .squeeze(1)
        .equal(torch.arange(500))
    )


def test_a_nan_does_not_spread():
    queries, templates = _points("normal", 5, 4, 0), _points("normal", 500, 4, 1)
    clean = module.nearest(queries, templates, 3, _euclidean, 64)
    queries[2, 1] = torch.nan
    lengths, indices = module.nearest(queries, templates, 3, _euclidean, 64)
    others = [0, 1, 3, 4]
    assert torch.equal(lengths[others], clean[0][others])
    assert torch.equal(indices[others], clean[1][others])
    assert lengths[2].isnan().all()


def test_no_table_is_larger_than_a_block(monkeypatch):
    sizes = []
    plain = torch.addmm
    monkeypatch.setattr(
        torch, "addmm", lambda *a, **o: sizes.append(plain(*a, **o).numel()) or plain(*a, **o)
    )
    queries, templates = _points("normal", 100, 4, 0), _points("normal", 500, 4, 1)
    so.nn.functional.nearest_neighbours(queries, templates, 3, block=32)
    assert max(sizes) == 32**2
    assert sum(sizes) == 100 * 500


def test_distances_carry_gradients():
    queries = _points("normal", 4, 3, 0, torch.float64).requires_grad_()
    templates = _points("normal", 200, 3, 1, torch.float64)

    def lengths(queries):
        return so.nn.functional.nearest_neighbours(queries, templates, 3)[0]

    torch.autograd.gradcheck(lengths, queries)
