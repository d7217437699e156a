"""One name, one thing: what is imported by a path is what stands under that path."""

import sys
from importlib import import_module
from pkgutil import walk_packages

import softorder as so

_ELSEWHERE = ("triton", "__main__")  #: needs what is not everywhere, or runs


def test_no_function_hides_a_module():
    paths = [module.name for module in walk_packages(so.__path__, "softorder.")]
    for path in (path for path in paths if not any(word in path for word in _ELSEWHERE)):
        package, _, name = path.rpartition(".")
        module = import_module(path)
        assert getattr(sys.modules[package], name) is module


def test_methods_are_a_table_and_their_classes_have_a_public_place():
    assert callable(so.methods)
    assert so.relaxations.NetworkMethod("bitonic").name == "network"
