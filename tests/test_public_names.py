"""Every public name says what it takes and what it is for, and shows it in an example that runs.

The examples are run as doctests; here it is tested that there are some.
"""

import inspect
import re

import pytest

from docs.names import GROUPS, named

#: names whose example is that of another name, or of a page
_SHOWN_BY = {
    "so.densities.BUILT_IN": "so.densities.Density",
    "so.densities.UserDensity": "so.soft_topk",
    "so.distributions.KHotVector": "so.distributions.KHot",
    "so.networks.SELECTION_KINDS": "so.networks.selection_network",
    "so.networks.SORTING_KINDS": "so.networks.sorting_network",
    "so.nn.Beams": "so.nn.BeamSearch",
    "so.nn.Decoder": "so.nn.BeamSearch",
    "so.nn.KHotCode": "so.nn.KHotHead",
    "so.nn.Routing": "so.nn.TopKRouter",
    "so.nn.Tokens": "so.nn.TokenSelection",
    "so.relaxations.MethodRow": "so.methods",
    "so.relaxations.MethodTable": "so.methods",
    "so.relaxations.TransportPlan": "so.Sinkhorn",
    "so.relaxations.register": "so.relaxations.find",
    "so.schedules.Schedule": "so.schedules.Linear",
    "so.sampling.DesignTable": "so.sampling.designs",
    "so.sampling.register": "so.sampling.find",
}
_NAMES = dict(name for group in GROUPS for name in named(group))
_every_name = pytest.mark.parametrize("name", sorted(_NAMES))


def _doc(name):
    return inspect.getdoc(_NAMES[name]) or ""


def _of_ranks(name):
    """What docs/distributed.md shows: it takes a group of processes."""
    return name.startswith("so.distributed.")


@_every_name
def test_it_has_an_example(name):
    if _of_ranks(name):
        return
    shown = _SHOWN_BY.get(name, name)
    assert ">>>" in _doc(shown), f"no example of {shown}"


def _says_what_it_takes(name, before=()):
    """By Args, or by the name of that whose arguments it has."""
    doc = _doc(name)
    if "Args:" in doc:
        return True
    home = name.rpartition(".")[0]
    others = re.findall(r"`(?:so\.)?([\w.]+)", doc)
    others = [f"{place}.{other}" for other in others for place in ("so", home)]
    above = getattr(_NAMES[name], "__mro__", ())[1:]
    others += [other for other, value in _NAMES.items() if value in above]
    before = (*before, name)
    return any(
        _says_what_it_takes(other, before)
        for other in others
        if other in _NAMES and other not in before
    )


@_every_name
def test_it_says_what_it_takes(name):
    value = _NAMES[name]
    if callable(value) and name not in _SHOWN_BY and inspect.signature(value).parameters:
        assert _says_what_it_takes(name), _doc(name)


def test_what_is_shown_elsewhere_is_public():
    assert set(_SHOWN_BY) | set(_SHOWN_BY.values()) <= set(_NAMES)
