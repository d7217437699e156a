"""The documentation loads nothing from elsewhere, and the playground works in it."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.playground import chromium

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[2]
_STATE = "#x=1,2,-1&k=1.5&t=0.5&f=normal&i=1"
_FRAME = "document.getElementById('playground-frame')"
_INSIDE = f"{_FRAME}.contentWindow.Playground.numbers()"
_SCHEME = f"{_FRAME}.contentDocument.documentElement.dataset.scheme"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package, reason="make docs installs what the site is built with")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=_ROOT, env=environment, check=True)
    return folder


@pytest.fixture(scope="module")
def server(site):
    """Its address on this machine."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Silent, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


@pytest.fixture
def tab(browser):
    opened = chromium.Page(browser, width=1280)
    yield opened
    opened.close()


# --- nothing from elsewhere -----------------------------------------------------------------------


class _Loads(HTMLParser):
    """Addresses that a browser fetches by itself; not those of links that are followed by hand."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        fetched = ["src", "srcset", "poster", "data", *(["href"] if tag in ("link", "use") else [])]
        if tag == "link" and named.get("rel") in ("canonical", "next", "prev"):
            return
        self.found += [named[name] for name in fetched if named.get(name)]


def _external(address):
    return re.match(r"(?:[a-z]+:)?//", address.strip()) is not None


def _loads(path):
    text = path.read_text()
    if path.suffix == ".css":
        return re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", text)
    parser = _Loads()
    parser.feed(text)
    styles = re.findall(r"url\(\s*['\"]?([^'\")\s]+)", text)
    return parser.found + styles


def test_external_loads_are_noticed(tmp_path):
    page, style = tmp_path / "page.html", tmp_path / "style.css"
    page.write_text(
        "<a href='https://a.b'>x</a><img src='//c.d/e.png'><script src='f.js'></script>"
    )
    style.write_text("@import 'https://g.h/i.css'; p { background: url(j.png) }")
    assert [a for a in _loads(page) if _external(a)] == ["//c.d/e.png"]
    assert [a for a in _loads(style) if _external(a)] == ["https://g.h/i.css"]


def test_pages_and_styles_name_nothing_from_elsewhere(site):
    files = [path for kind in ("html", "css") for path in sorted(site.rglob(f"*.{kind}"))]
    assert len(files) > 15
    found = {str(f): [a for a in _loads(f) if _external(a)] for f in files}
    assert {name: loads for name, loads in found.items() if loads} == {}


def test_pages_ask_no_other_host(site, server, tab):
    """What scripts load, as well: that of mkdocs-material would fetch parts for some pages."""
    for path in sorted(site.rglob("*.html")):
        tab.open(f"{server}/{path.relative_to(site)}")
        asked = [url for url in tab.requests() if not url.startswith((server, "data:", "about:"))]
        assert asked == [], path.name
        assert path.name == "404.html" or tab.complaints() == []


# --- the playground in its frame ------------------------------------------------------------------


def _eventually(tab, expression, wanted):
    end = time.monotonic() + 30
    while (found := tab.evaluate(expression)) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    assert found == wanted


def test_the_frame_has_the_state_of_the_address(server, tab):
    tab.open(f"{server}/playground.html{_STATE}")
    _eventually(tab, f"{_INSIDE}.state.scores", [1, 2, -1])
    tab.evaluate(f"{_FRAME}.contentDocument.getElementById('add').click()")
    _eventually(tab, "location.hash", _STATE.replace("-1&", "-1,-2.5&").replace("i=1", "i=3"))
    tab.evaluate("location.hash = '#x=0,1&k=1&t=1&f=cauchy&i=0'")
    _eventually(tab, f"{_INSIDE}.state.density", "cauchy")


def test_an_anchor_stays_an_anchor(server, tab):
    tab.open(f"{server}/playground.html#what-you-see")
    _eventually(tab, f"{_INSIDE}.state.k", 3)
    time.sleep(0.4)
    assert tab.evaluate("location.hash") == "#what-you-see"


def test_the_link_is_that_of_the_page_around(server, tab):
    tab.open(f"{server}/playground.html{_STATE}")
    _eventually(tab, f"{_INSIDE}.state.k", 1.5)
    tab.evaluate(
        f"""{_FRAME}.contentWindow.navigator.clipboard.writeText = async text => {{
          window.copied = text;
        }};
        {_FRAME}.contentDocument.getElementById('copy-link').click()"""
    )
    _eventually(tab, "window.copied", f"{server}/playground.html{_STATE}")


@pytest.mark.parametrize("width", [375, 1280])
def test_the_frame_is_as_high_as_its_page(server, tab, width):
    tab.resize(width)
    tab.open(f"{server}/playground.html")
    inside = f"{_FRAME}.contentDocument"
    fits = f"{_FRAME}.clientHeight - {inside}.querySelector('main').clientHeight"
    _eventually(tab, f"Math.abs({fits}) <= 1", True)
    assert tab.evaluate(f"{inside}.documentElement.scrollWidth <= {_FRAME}.clientWidth")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_the_frame_follows_the_palette(server, tab):
    tab.colours("dark")
    tab.open(f"{server}/playground/index.html")  # where mkdocs-material is not at work
    tab.evaluate("localStorage.clear()")  # in which it remembers what it has shown before
    tab.open(f"{server}/playground.html")
    _eventually(tab, _SCHEME, "dark")
    tab.evaluate("document.body.dataset.mdColorScheme = 'default'")
    _eventually(tab, _SCHEME, "light")


def test_the_site_works_from_the_disk(site, tab):
    tab.open((site / "playground.html").as_uri() + _STATE)
    _eventually(tab, f"{_FRAME}.style.height !== ''", True)
    assert tab.complaints() == []
