"""A new density is one file, and its place in BUILT_IN: CONTRIBUTING.md says so."""

import shutil
from pathlib import Path

import softorder
from softorder.kernels import _native
from tests.runtime.processes import run

_FILE = '''
import torch

from softorder.densities.base import Density


class Student(Density):
    """Student's t with two degrees of freedom."""

    name = "student"
    smoothness = "smooth"
    paper = "none"
    aliases = ("t2",)
    decay = "hyperbola"

    def cdf(self, u):
        return 0.5 + 0.5 * u / torch.sqrt(2 + u * u)

    def pdf(self, u):
        return (2 + u * u) ** -1.5
'''
_PROGRAM = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
sys.path.insert(0, {folder!r})
import torch, softorder as so
assert so.__file__.startswith({folder!r}), so.__file__
served = [row.operator for row in so.methods() if row.name == "student"]
torch.manual_seed(0)
scores = torch.randn(4, 9, dtype=torch.float64, requires_grad=True)
p = so.soft_topk(scores, 3, method="student")
torch.testing.assert_close(p.sum(-1), torch.full((4,), 3.0).double())
results = [
    p,
    so.log_soft_topk(scores, 3, method="student"),
    so.soft_rank(scores, method="student"),
    so.soft_sort(scores, method="student"),
    so.soft_permutation(scores, method="student"),
    so.soft_quantile(scores, 0.3, method="student"),
    so.fsum(scores, torch.zeros(2), method="student"),
    so.fsum_inverse(scores, torch.ones(2), method="student"),
]
torch.testing.assert_close(results[4].sum(-1), torch.ones(4, 9).double())
torch.testing.assert_close(results[4].sum(-2), torch.ones(4, 9).double())
sum((r * torch.rand_like(r)).sum() for r in results).backward()
assert scores.grad.isfinite().all()
try:
    so.soft_topk(scores, 3, method="t2")
except ValueError as error:
    assert "student" in str(error)
print(*sorted(served))
"""


def _copy(folder):
    """The installed package, its compiled libraries too."""
    target = folder / "softorder"
    shutil.copytree(Path(softorder.__file__).parent, target, ignore=shutil.ignore_patterns("__py*"))
    (target / "kernels" / "_lib").mkdir(exist_ok=True)
    for name in ("cpu", *_native.LEVELS):
        path = _native.library_path(name)
        if path is not None:
            shutil.copy(path, target / "kernels" / "_lib")
    return target / "densities"


def test_two_files_make_a_density(tmp_path):
    densities = _copy(tmp_path)
    (densities / "student.py").write_text(_FILE)
    register = densities / "__init__.py"
    text = register.read_text()
    line = "(Laplace(), Logistic(), Normal(), Cauchy(), Uniform())"
    assert line in text
    text = text.replace(line, line[:-1] + ", Student())")
    register.write_text(
        text.replace('"""\n', '"""\nfrom softorder.densities.student import Student\n', 1)
    )
    served = run(_PROGRAM.format(folder=str(tmp_path))).split()
    assert served == [
        "fsum",
        "fsum_inverse",
        "log_soft_topk",
        "permutation_cross_entropy",
        "soft_permutation",
        "soft_quantile",
        "soft_rank",
        "soft_sort",
        "soft_topk",
    ]
