"""Densities by number: operators take no objects, so that is how a density travels to them."""

from __future__ import annotations

import ctypes
from weakref import WeakValueDictionary

import torch

from softorder.densities import BUILT_IN, Density, UserDensity
from softorder.kernels._compiler import constant_in_graphs

NUMBERED = tuple(BUILT_IN.values())
COMPILED = 5  #: so many of them the compiled library knows: the first ones
_NUMBER = {density.name: number for number, density in enumerate(NUMBERED)}
_WALKED = tuple(_NUMBER[name] for name in ("laplace", "uniform"))
_users: WeakValueDictionary[int, Density] = WeakValueDictionary()
_traced: dict[int, Density] = {}  # kept alive for the graphs that name them


def number_of(density: Density) -> int:
    """The number by which the operators know a density."""
    if not isinstance(density, UserDensity):
        return _NUMBER[density.name]
    if torch.compiler.is_compiling():
        return _keep(id(density.law))
    _users[id(density)] = density
    return id(density)


@constant_in_graphs
def _keep(address: int) -> int:
    # Runs while torch.compile traces, which can hand over the address of an object but not the
    # object. Whoever is being traced holds it.
    law = ctypes.cast(address, ctypes.py_object).value
    _traced[address] = UserDensity(law)
    return address


def is_walked(number: int) -> bool:
    """Whether compiled kernels order scores by it in one walk: csrc/order/densities.hpp."""
    return number in _WALKED


def density_of(number: int) -> Density:
    """The density with that number."""
    if number < len(NUMBERED):
        return NUMBERED[number]
    return _users.get(number) or _traced[number]
