"""A module that is exported, saved and loaded in another process gives the same numbers."""

import warnings

import pytest
import torch

import softorder as so
from tests.runtime.processes import run, run_fresh

_LOAD = """
import torch, softorder
scores, expected = torch.load({data!r})
program = {program}
for rows in (1, 7):
    found = program(scores[:rows])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other[:rows], rtol=1e-5, atol=1e-5)
print("the same")
"""


class _Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(20, 20)
        self.topk = so.nn.SoftTopK(3, temperature=0.3)

    def forward(self, scores):
        z = self.linear(scores)
        ranks = so.soft_rank(z, temperature=0.2)
        rows = so.soft_permutation(z, k=2, temperature=0.2)
        others = so.soft_permutation(z, k=2, temperature=0.2, method="softsort")
        return self.topk(z), ranks, so.soft_sort(z, temperature=0.2), rows, others


def _exported(folder):
    """The exported program, and a file with inputs and right results."""
    torch.manual_seed(0)
    model, scores = _Model().eval(), torch.randn(7, 20)
    batch = torch.export.Dim("batch", min=1, max=1000)
    with torch.no_grad():
        program = torch.export.export(model, (scores,), dynamic_shapes=({0: batch},))
        torch.save((scores, model(scores)), folder / "data.pt")
    return program


@pytest.mark.parametrize("kind", ["native", pytest.param("torch", marks=pytest.mark.slow)])
def test_saved_and_loaded(tmp_path, kind):
    """Also where there are no compiled kernels: a graph knows operators, not who computes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of torch's own pickles
        torch.export.save(_exported(tmp_path), tmp_path / "model.pt2")
    program = f"torch.export.load({str(tmp_path / 'model.pt2')!r}).module()"
    script = "import warnings; warnings.simplefilter('ignore', FutureWarning)" + _LOAD
    printed = run(
        script.format(data=str(tmp_path / "data.pt"), program=program), SOFTORDER_KERNELS=kind
    )
    assert printed.strip() == "the same"


@pytest.mark.slow
def test_by_aot_inductor(tmp_path):
    package = str(tmp_path / "package.pt2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch._inductor.aoti_compile_and_package(_exported(tmp_path), package_path=package)
    script = "import warnings; warnings.simplefilter('ignore')" + _LOAD
    program = f"torch._inductor.aoti_load_package({package!r})"
    printed = run_fresh(script.format(data=str(tmp_path / "data.pt"), program=program))
    assert "the same" in printed
