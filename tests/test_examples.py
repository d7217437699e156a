"""The examples run, and what they show is so, with fewer steps than they take."""

import importlib.util
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[1] / "examples"


def _load(name):
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_transformer_layer():
    assert _load("transformer_layer").main(steps=100) > 0.25  # by chance: 1/7


def test_mixture_of_experts():
    error, spread = _load("mixture_of_experts").main(steps=200)
    assert error < 0.4 * spread


def test_sparse_autoencoder():
    assert _load("sparse_autoencoder").main(steps=300) > 0.6


def test_sharded_classifier():
    """Alone; tests/distributed has it on two processes."""
    assert _load("sharded_classifier").main(classes=50, steps=40) > 0.5  # by chance: 0.1


@pytest.mark.parametrize("path", sorted(_FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_is_tested(path):
    assert f"test_{path.stem}" in globals()
