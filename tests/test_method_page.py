"""The page about all methods shows what the library does now."""

import pytest
import torch

import softorder as so
from benchmarks import method_page


def test_its_tables_are_up_to_date():
    """`python -m benchmarks.method_page` writes them."""
    assert method_page.SNIPPET.read_text() == method_page.tables()


def test_every_broken_law_is_in_the_table():
    text = method_page.tables()
    for row in so.methods():
        for law in row.breaks:
            line = next(v for v in text.splitlines() if f"`{row.operator}` | {_words(law)} |" in v)
            assert f"`{row.name}`" in line


def _words(law):
    return law.replace("_", " ")


@pytest.mark.parametrize("method", ["laplace", "neuralsort", "network"])
def test_methods_are_shown_equally_soft(method):
    def softness(temperature):
        return method_page.matrix(method, temperature).diagonal().mean().item()

    temperature = method_page.temperature_of(softness)
    assert softness(temperature) == pytest.approx(0.6, abs=1e-6)
    p = method_page.matrix(method, temperature)
    torch.testing.assert_close(p.sum(-1), torch.ones(len(p), dtype=p.dtype))
