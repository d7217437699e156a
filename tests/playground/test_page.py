"""The page can be used: by mouse, finger, keyboard and screen reader, in both schemes."""

import json

import pytest

from tests.playground.conftest import HERE, PLAYGROUND

_START = "#x=-2,0.5,3&k=1.5&t=0.3&f=laplace&i=1"


@pytest.fixture
def small(page):
    """The page with three scores, far apart."""
    page.open(PLAYGROUND.as_uri() + _START)
    return page


def _numbers(page):
    return json.loads(page.evaluate("JSON.stringify(Playground.numbers())"))


def _scores(page):
    return _numbers(page)["state"]["scores"]


def _middle(page, selector):
    """Of an element, in view."""
    return page.evaluate(
        f"""(box => [box.left + box.width / 2, box.top + box.height / 2])(
        document.querySelector({json.dumps(selector)}).getBoundingClientRect())"""
    )


def _text(page, selector):
    return page.evaluate(f"document.querySelector('{selector}').textContent")


# --- mouse, finger, keyboard ----------------------------------------------------------------------


@pytest.mark.parametrize("way", ["drag", "swipe"])
def test_a_score_is_dragged(small, way):
    before = _numbers(small)
    x, y = _middle(small, "[data-score='2'] .disc")
    unit = small.evaluate(
        "document.querySelectorAll('#weights .grid')[1].x1.baseVal.value"
        " - document.querySelectorAll('#weights .grid')[0].x1.baseVal.value"
    )
    # Upwards, too: a finger that does so elsewhere scrolls.
    getattr(small, way)((x + 3, y + 2), (x + 3 - 2 * unit, y - 250))
    after = _numbers(small)
    assert after["state"]["scores"] == pytest.approx([-2, 0.5, 1], abs=0.011)
    assert after["state"]["selected"] == 2
    assert _focused(small) == "score 2"
    assert small.evaluate("scrollY") == 0
    assert after["p"][2] < before["p"][2]
    assert after["p"][1] > before["p"][1]


def test_a_click_on_the_line_adds_a_score_there(small):
    x, y = _middle(small, "[data-score='1'] .disc")
    small.drag((x + 100, y + 20), (x + 100, y + 20))
    assert len(_scores(small)) == 4
    assert _middle(small, "[data-score='3'] .disc")[0] == pytest.approx(x + 100, abs=1)
    assert _numbers(small)["state"]["selected"] == 3


def test_buttons_add_and_remove_up_to_the_limits(small):
    def click_while_possible(button):
        small.evaluate(
            f"""(async button => {{
              for (; !button.disabled; await new Promise(requestAnimationFrame)) button.click();
            }})(document.getElementById('{button}'))"""
        )
        return _numbers(small)

    found = click_while_possible("remove")
    assert len(found["state"]["scores"]) == len(found["p"]) == 1
    assert found["state"]["k"] == 1
    small.evaluate(f"Playground.restore('#x={'1,' * 27}1')")
    found = click_while_possible("add")
    assert len(found["state"]["scores"]) == len(found["p"]) == 30
    assert -4 < found["state"]["scores"][29] < 4


def _focused(page):
    return page.evaluate(
        "(e => e.dataset.score ? `score ${e.dataset.score}` : e.id || e.value)"
        "(document.activeElement)"
    )


def _tab_to(page, wanted):
    for _ in range(40):
        if _focused(page) == wanted:
            return
        page.press("Tab")
    raise AssertionError(f"Tab does not reach {wanted}")


def test_by_keyboard_alone(small):
    _tab_to(small, "score 1")
    small.press("ArrowRight")
    small.press("ArrowUp")
    assert _scores(small)[1] == 0.6
    small.press("ArrowLeft")
    small.press("PageDown")
    assert _scores(small)[1] == 0.05
    small.press("End")
    assert _scores(small)[1] == 4
    small.press("Home")
    assert _scores(small)[1] == -4
    small.press("Delete")
    assert _scores(small) == [-2, 3]
    assert _focused(small) == "score 1"

    _tab_to(small, "k-number")
    small.press("ArrowUp")
    assert _numbers(small)["state"]["k"] == 2
    _tab_to(small, "k")
    small.press("ArrowLeft")
    assert _numbers(small)["state"]["k"] == pytest.approx(1.95)
    _tab_to(small, "temperature")
    small.press("ArrowRight")
    assert _numbers(small)["state"]["temperature"] == pytest.approx(0.309, abs=0.01)
    _tab_to(small, "laplace")
    small.press("ArrowRight")
    assert _numbers(small)["state"]["density"] == "logistic"
    for control in ("selected", "copy-python", "copy-link"):
        _tab_to(small, control)


@pytest.mark.slow
def test_presets(small):
    for name in ("Bell", "Ties", "Outlier", "Two clusters"):
        button = f"find(button => button.textContent === '{name}')"
        small.evaluate(f"[...document.querySelectorAll('#presets button')].{button}.click()")
        small.settle()
        numbers = _numbers(small)
        assert sum(numbers["p"]) == pytest.approx(numbers["state"]["k"])
        assert 0 < numbers["softness"] < 0.5
        if name == "Ties":
            assert len(set(numbers["state"]["scores"])) < len(numbers["state"]["scores"])


@pytest.mark.slow
def test_typed_numbers_are_kept_within_their_limits(small):
    def type_into(field, text):
        small.evaluate(
            f"""(field => {{
              field.focus();
              field.value = '{text}';
              field.dispatchEvent(new Event('input', {{bubbles: true}}));
              field.dispatchEvent(new Event('change', {{bubbles: true}}));
              field.blur();
            }})(document.querySelector('{field}'))"""
        )
        small.settle()
        return _numbers(small)["state"]

    assert type_into("#k-number", "2.25")["k"] == 2.25
    assert type_into("#k-number", "77")["k"] == 3
    assert type_into("#k-number", "")["k"] == 3
    assert small.evaluate("document.getElementById('k-number').value") == "3"
    assert type_into("#temperature-number", "0.125")["temperature"] == 0.125
    assert type_into("#temperature-number", "0")["temperature"] == 0.01
    assert type_into("#table input", "-1.25")["scores"][0] == -1.25


# --- link and code --------------------------------------------------------------------------------


def _wait_for_link(page):
    page.evaluate("new Promise(done => setTimeout(done, 350))")
    return page.evaluate("location.hash")


def test_the_address_keeps_the_state(small):
    assert small.evaluate("location.hash") == _START
    _tab_to(small, "score 1")
    small.press("ArrowRight")
    changed = _wait_for_link(small)
    assert changed == _START.replace("0.5", "0.55")
    numbers = _numbers(small)
    small.open(PLAYGROUND.as_uri() + changed)
    assert _numbers(small) == numbers
    small.evaluate(f"location.hash = '{_START}'; new Promise(requestAnimationFrame)")
    assert _scores(small) == [-2, 0.5, 3]


@pytest.mark.slow
def test_the_plain_address_stays_plain(playground):
    assert _wait_for_link(playground) == ""


_WRONG = {
    "#x=1,two,3": "x must be 1 to 30 numbers between -4 and 4, but the link has “1,two,3”.",
    "#x=1,,3": "x must be",
    "#x=1,9": "x must be",
    "#x=" + ",".join(["1"] * 31): "x must be",
    "#x=1,2&k=3": "k must be a number between 0 and 2, but the link has “3”.",
    "#x=1,2&k=NaN": "k must be",
    "#x=1,2&t=0": "The temperature t must be a number between 0.01 and 10",
    "#x=1,2&f=toString": "The density f must be one of laplace, logistic,",
    "#x=1,2&i=0.5": "The selected score i must be a whole number below 2",
    "#x=<b>1</b>": "but the link has “<b>1</b>”.",
}


def test_a_wrong_link_is_told_and_shows_something(playground):
    hidden = "document.getElementById('problems').hidden"
    for wrong, told in _WRONG.items():
        playground.evaluate(f"Playground.restore({json.dumps(wrong)})")
        assert told in _text(playground, "#problems")
        assert playground.evaluate(hidden) is False
        numbers = _numbers(playground)
        assert sum(numbers["p"]) == pytest.approx(numbers["state"]["k"])
        playground.evaluate(f"Playground.restore('{_START}')")
        assert playground.evaluate(hidden) is True


_CLIPBOARDS = {
    "open": "",
    "closed": "navigator.clipboard.writeText = () => Promise.reject(new Error('closed'));",
    "absent": "Object.defineProperty(navigator, 'clipboard', {value: undefined});",
}


@pytest.mark.parametrize(
    "clipboard", ["open", *(pytest.param(c, marks=pytest.mark.slow) for c in ("closed", "absent"))]
)
def test_code_and_link_are_copied(small, browser, clipboard):
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    small.evaluate("window.read = navigator.clipboard.readText.bind(navigator.clipboard)")
    small.evaluate(_CLIPBOARDS[clipboard])
    expected = {
        "copy-python": _text(small, "#python"),
        "copy-link": PLAYGROUND.as_uri() + _START,
    }
    for button, text in expected.items():
        small.evaluate(f"document.getElementById('{button}').scrollIntoView()")
        place = _middle(small, f"#{button}")
        small.drag(place, place)
        assert "is copied" in _text(small, "#copied")
        assert small.evaluate("read()") == text
        assert _focused(small) == button


# --- everybody ------------------------------------------------------------------------------------


def test_every_control_has_a_name(small):
    small.evaluate("document.querySelector('details').open = true")
    small.settle()
    nodes = small.call("Accessibility.getFullAXTree")["nodes"]
    named = {}
    for node in nodes:
        role = node.get("role", {}).get("value")
        if not node["ignored"]:
            named.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    controls = ("button", "slider", "spinbutton", "radio", "combobox", "image", "group", "region")
    for role in controls:
        assert named[role], role
        assert all(named[role]), (role, named[role])
    assert {"Score 0", "Score 1", "Score 2", "Temperature τ"} < set(named["slider"])
    assert "How many: k" in named["slider"]
    assert len(named["slider"]) == 5
    assert len(named["spinbutton"]) == 5
    assert len(named["radio"]) == 5


def test_changes_are_told(small):
    assert small.evaluate("document.getElementById('status').getAttribute('role')") == "status"
    _tab_to(small, "score 1")
    small.press("ArrowRight")
    handle = "document.activeElement.getAttribute('aria-valuetext')"
    assert small.evaluate(handle).startswith("0.55, weight 0.5")
    small.evaluate("new Promise(done => setTimeout(done, 400))")
    assert _text(small, "#status").startswith("Score 1 at 0.55 has weight 0.5")


_OUTSIDE = """[...document.querySelectorAll('button, input, select, svg, .handle, h2, p')]
  .filter(e => !e.closest('.scrolls'))
  .filter(e => e.getBoundingClientRect().left < 0 || e.getBoundingClientRect().right > innerWidth)
  .map(e => e.id || e.textContent)"""


def test_nothing_is_wider_than_the_screen(small):
    small.evaluate("document.querySelector('details').open = true")
    for width in (320, 375, 768):
        small.resize(width)
        small.settle()
        assert small.evaluate("document.documentElement.scrollWidth") <= width
        assert small.evaluate(_OUTSIDE) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(small, scheme):
    small.colours(scheme)
    small.evaluate("document.querySelector('details').open = true")
    small.settle()
    found = small.evaluate((HERE / "contrast.js").read_text())
    assert len(found) > 80
    assert [each for each in found if not each["ratio"] >= each["least"]] == []


def test_the_palette_of_the_documentation_goes_before_the_system(small):
    background = "getComputedStyle(document.body).backgroundColor"
    small.colours("light")
    assert small.evaluate(background) == "rgb(255, 255, 255)"
    small.evaluate("document.documentElement.dataset.scheme = 'dark'")
    dark = small.evaluate(background)
    small.evaluate("delete document.documentElement.dataset.scheme")
    small.colours("dark")
    assert small.evaluate(background) == dark != "rgb(255, 255, 255)"
