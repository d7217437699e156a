"""docs/migration.md: what stands in the right column does what stands in the left one.

entmax, difftopk and diffsort are the packages. For the others their formulas stand, written from
the papers, under the names that they have there; that the packages themselves agree is what
test_torchsort.py and test_softtorch.py show where these are installed.
"""

import contextlib
import io
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import softorder as so
from tests.peers import permutahedra
from tests.peers.statements import cotangent, scores
from tests.peers.test_lapsum import _laplace, _TopK

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of how difftopk uses torch

_PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
_SECTIONS = re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", _PAGE, re.M | re.S)
_LINES = [
    (section, *codes)
    for section, text in _SECTIONS
    for codes in re.findall(r"^\| `(.*?)` \| `(.*?)` \|$", text, re.M)
]


def _by_rows(function):
    return lambda x, *arguments: torch.stack([function(row, *arguments) for row in x])


_rank, _sort = _by_rows(permutahedra.soft_rank), _by_rows(permutahedra.soft_sort)


def _torchsort():
    def of(function):
        return lambda x, regularization="l2", regularization_strength=1.0: function(
            x, regularization_strength, regularization
        )

    return SimpleNamespace(soft_rank=of(_rank), soft_sort=of(_sort))


def _fast_soft_sort():
    def rank(x, direction="ASCENDING", regularization_strength=1.0):
        return _rank(x if direction == "ASCENDING" else -x, regularization_strength, "l2")

    def sort(x, direction="ASCENDING", regularization_strength=1.0):
        sign = 1 if direction == "ASCENDING" else -1
        return sign * _sort(sign * x, regularization_strength, "l2")

    return SimpleNamespace(soft_rank=rank, soft_sort=sort)


def _lapsum():
    def rank(x, alpha):
        pairs = _laplace((x.unsqueeze(-1) - x.unsqueeze(-2)) / alpha)
        return (pairs * (1 - torch.eye(x.shape[-1], dtype=x.dtype))).sum(-1)

    return SimpleNamespace(soft_topk=lambda x, k, alpha: _TopK.apply(x, k, alpha), soft_rank=rank)


def _softtorch():
    """SoftSort (Prillo & Eisenschlos 2020), equation 4, ascending."""

    def argsort(x, softness, method, standardize):
        assert (method, standardize) == ("softsort", False)
        places = x.sort(-1).values.unsqueeze(-1)
        return (-(places - x.unsqueeze(-2)).abs() / softness).softmax(-1)

    def sort(x, **options):
        return SimpleNamespace(values=(argsort(x, **options) @ x.unsqueeze(-1)).squeeze(-1))

    return SimpleNamespace(argsort=argsort, sort=sort)


def _package(name):
    with contextlib.redirect_stdout(io.StringIO()):  # difftopk prints what it misses
        return pytest.importorskip(name)


_STANDING_IN = {
    "torchsort": _torchsort,
    "pytorch_ops": _fast_soft_sort,
    "lapsum": _lapsum,
    "st": _softtorch,
}
_PACKAGES = ("entmax", "difftopk", "diffsort")


def _names(before):
    """What the left column means by its first name."""
    name = re.match(r"\w+", before)[0]
    if name in _STANDING_IN:
        return {name: _STANDING_IN[name]()}
    return {name: _package(name)} if name in _PACKAGES else {}


@pytest.mark.parametrize(("section", "before", "after"), _LINES)
def test_a_line(section, before, after):
    dtype = torch.float32 if section == "difftopk" else torch.float64
    given = {"torch": torch, "so": so, "k": 3, "y": torch.tensor([0, 3, 5, 7]), **_names(before)}
    given["one_hot"] = torch.nn.functional.one_hot
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-6, "atol": 1e-8}
    for value in (0.5, 2.0):
        given.update(s=value, tau=value)
        found = []
        for code in (before, after):
            x = scores(4, 8, dtype=dtype).requires_grad_()
            result = eval(code, {**given, "x": x})
            pulled = None
            if result.requires_grad:
                (pulled,) = torch.autograd.grad((result * cotangent(result)).sum(), x)
            found.append((result.detach().to(dtype), pulled))
        (theirs, slope), (ours, own) = found
        torch.testing.assert_close(ours, theirs, **close)
        if slope is not None and own is not None:
            torch.testing.assert_close(own, slope, **close)


def test_every_section_has_lines():
    assert {section for section, *_ in _LINES} == {section for section, _ in _SECTIONS}
    rows = [line for line in _PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) == len(_LINES) >= 30
