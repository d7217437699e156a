"""The pages: links that lead somewhere, pictures and figures of today, nothing from elsewhere."""

import json
import re
from importlib import metadata
from pathlib import Path

import pytest

from docs import corners
from docs.landing import FIGURE, picture
from docs.made import EXAMPLES, api, contents, experiments, gallery
from docs.names import GROUPS
from softorder.kernels.contract import Gives

_ROOT = Path(__file__).parents[1]
_PAGES = [
    *sorted(_ROOT.glob("*.md")),
    *sorted((_ROOT / "docs").glob("*.md")),
    _ROOT / "csrc" / "README.md",
    _ROOT / "src" / "softorder" / "kernels" / "README.md",
]
#: what docs/hooks.py makes when the site is built
_MADE = {f"docs/api/{group.file}.md" for group in GROUPS} | {"docs/examples/index.md"}
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def _anchors(page):
    """What headings are called in an address, as mkdocs has it."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    found = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\s-]", "", title).strip().lower().replace(" ", "-") for title in found}


def _links(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    return [link for link in _LINK.findall(re.sub(r"`[^`]*`", "", text)) if ":" not in link]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_links_lead_somewhere(page):
    for link in _links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if str(target.relative_to(_ROOT)) in _MADE:
            continue
        assert target.exists() or _is_a_plot(target), f"{page.name} links to {link}"
        if anchor and target.suffix == ".md":
            assert anchor in _anchors(target), f"{page.name} links to {link}"


def _is_a_plot(target):
    """Of the benchmark, which the site has beside its pages, or of an example, a folder below."""
    home = "examples" if target.parent.name == "examples" else "benchmarks"
    return (_ROOT / home / "results" / target.name).exists()


def test_a_broken_link_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[a](b.md#c) `[no](link)` [web](https://example.org)\n\n# Über all!\n")
    assert _links(page) == ["b.md#c"]
    assert _anchors(page) == {"über-all"}


def test_every_page_is_reached_from_the_menu():
    menu = (_ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": ([\w/]+\.md)$", menu, re.M))
    pages = {path.name for path in (_ROOT / "docs").glob("*.md")}
    assert listed == pages | {path.removeprefix("docs/") for path in _MADE}


def test_the_first_picture_is_up_to_date():
    assert FIGURE.read_text(encoding="utf-8") == picture()


def test_the_contract_is_up_to_date():
    """`python -m docs.corners` writes it."""
    assert corners.SNIPPET.read_text(encoding="utf-8") == corners.tables()


def test_the_page_explains_every_word_of_the_contract():
    page = (_ROOT / "docs" / "corners.md").read_text(encoding="utf-8")
    words, _, _ = page.partition("## The contract")
    for gives in Gives:
        assert gives.value in words


def test_the_gallery_has_every_example_with_its_results():
    page = gallery()
    for path in EXAMPLES.glob("*.py"):
        started = '__name__ == "__main__"' in path.read_text(encoding="utf-8")
        assert (f"examples/{path.name}" in page) == started
    for plot in (EXAMPLES / "results").glob("*.png"):
        assert f"]({plot.name})" in page


def test_the_api_has_every_public_function_and_class():
    pages = {group.file: api(group) for group in GROUPS}
    for name, page in [
        ("so.soft_topk", "operators"),
        ("so.hard.rank", "operators"),
        ("so.nn.functional.topk_attention", "layers"),
        ("so.sampling.sample", "sampling"),
        ("so.relaxations.Sinkhorn", "methods"),
    ]:
        assert f"heading: {name}\n" in pages[page]
    assert pages["operators"].index("so.soft_topk") < pages["operators"].index("so.fsum")


def test_experiments_are_pages_of_their_own():
    page = (_ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    found = experiments(page)
    assert {"knn", "topk_classification"} <= set(found)
    assert sum(map(len, found.values())) > 0.9 * len(page) - 5000
    for name in found:
        assert f"## {name}\n" in contents(page)  # which links from elsewhere lead to
        assert f"(results/{name}.md)" in contents(page)


def test_the_papers_figures_lead_to_the_pages_of_the_experiments():
    page = (_ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    found, shown = experiments(page), contents(page)
    assert all("## The papers' figures" not in text for text in found.values())
    links = re.findall(r"\]\(results/(\w+)\.md#([\w-]+)\)", shown)
    assert len(links) > 10
    for name, anchor in links:
        headings = re.findall(r"^### (.+)$", found[name], flags=re.M)
        assert anchor in {heading.replace(", ", "-") for heading in headings}
    assert "](#" not in shown


def test_pages_load_nothing_from_elsewhere():
    for page in (_ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"""(src|href)=["']https?:|!\[[^\]]*\]\(https?:""", text), page.name


def test_the_citation_is_of_this_version():
    text = (_ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {metadata.version('softorder')}\n" in text


def _worst(table):
    """Of the default density over all k and temperatures, for every size."""
    results = json.loads((_ROOT / "benchmarks" / "results" / "topk.json").read_text())
    rows = [
        row for row in results["figures"] if (row["table"], row["column"]) == (table, "laplace")
    ]
    assert len(rows) > 5
    return [row["value"] for row in rows]


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_headline_is_what_was_measured(name):
    text = " ".join((_ROOT / name).read_text(encoding="utf-8").split())
    assert "a batch costs between half a softmax and three, about a sixth of the hard" in text
    ratios = _worst("Forward, × torch.softmax")
    assert min(ratios) > 0.5
    assert max(ratios) < 3
    assert max(_worst("Forward, × hard torch.topk")) < 0.17


def test_the_readmes_table_is_what_was_measured():
    measured = (_ROOT / "benchmarks" / "results" / "topk.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d[\d,]*×[\d,]+) \|(.*)\|$", (_ROOT / "README.md").read_text(), re.M)
    assert len(rows) == 6
    for size, cells in rows:
        kept = re.search(rf"^\| {size} \|(.*)\|$", measured, re.M)[1].split("|")
        ours, _, *others = (cell.strip() for cell in kept)  # the second is plain torch
        assert [cell.strip() for cell in cells.split("|")] == [ours, *others]


def test_the_price_of_plain_torch_is_what_was_measured():
    measured = (_ROOT / "benchmarks" / "results" / "topk.md").read_text(encoding="utf-8")
    sizes = re.findall(r"^\| (\d[\d,]*×[\d,]+) \|", (_ROOT / "README.md").read_text(), re.M)
    ratios = []
    for size in sizes:
        ours, plain = re.search(rf"^\| {size} \| ([\d.]+) \| ([\d.]+) \|", measured, re.M).groups()
        ratios.append(float(plain) / float(ours))
    answer = f"{min(ratios):.0f} to {max(ratios):.0f} times slower"
    assert answer in (_ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
