"""Teams of processes, started when they are first needed."""

from pathlib import Path

import pytest

from tests.distributed.team import Team


def pytest_collection_modifyitems(items):
    """One process of pytest-xdist has all of these: its teams serve them all."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("teams"))


@pytest.fixture(scope="session")
def _teams():
    teams = {}
    yield teams
    for team in teams.values():
        team.stop()


@pytest.fixture(params=[2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 4, 7))])
def team(request, _teams):
    """Two processes; in the slow tests one, three, four and seven."""
    return _teams.setdefault(request.param, Team(request.param))


@pytest.fixture
def pair(_teams):
    """Two processes."""
    return _teams.setdefault(2, Team(2))


@pytest.fixture
def four(_teams):
    """Four processes."""
    return _teams.setdefault(4, Team(4))
