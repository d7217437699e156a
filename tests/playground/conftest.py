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


@pytest.fixture
def page(browser):
    """A new tab, which loads nothing but files of the playground, and complains of nothing."""
    tab = chromium.Page(browser)
    yield tab
    folder = PLAYGROUND.parent.as_uri()
    assert [url for url in tab.requests() if not url.startswith((folder, "about:", "data:"))] == []
    assert tab.complaints() == []
    tab.close()


@pytest.fixture
def playground(page):
    page.open(PLAYGROUND.as_uri())
    return page
