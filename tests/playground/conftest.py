"""One browser for all tests here; where there is none, they are skipped."""

from pathlib import Path

import pytest

from tests.playground import chromium

HERE = Path(__file__).parent
PLAYGROUND = HERE.parents[1] / "docs" / "playground" / "index.html"


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("playground"))


@pytest.fixture(scope="session")
def browser():
    program = chromium.executable()
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(chromium.NAMES)} is installed")
    with chromium.browser(program) as started:
        yield started


@pytest.fixture(scope="session")
def _tab(browser):
    return chromium.Page(browser)


@pytest.fixture
def page(_tab):
    """A tab, which loads nothing but files of the playground, and complains of nothing."""
    _tab.resize(1100)
    _tab.colours("light")
    yield _tab
    folder = PLAYGROUND.parent.as_uri()
    asked = [url for url in _tab.requests() if not url.startswith((folder, "about:", "data:"))]
    assert asked == []
    assert _tab.complaints() == []


@pytest.fixture
def playground(page):
    page.open(PLAYGROUND.as_uri())
    return page
