"""Brings into the site what stands elsewhere: plots, the API by its public names, the examples.

The page of experiments becomes one page for each of them.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from docs.names import GROUPS, Group, named  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
EXAMPLES = ROOT / "examples"
EXPERIMENTS = "reproduce.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for plot in sorted(RESULTS.glob("*.png")):
        files.append(File.generated(config, plot.name, abs_src_path=str(plot)))
    for plot in sorted((EXAMPLES / "results").glob("*.png")):
        path = f"examples/{plot.name}"
        files.append(File.generated(config, path, abs_src_path=str(plot)))
    for group in GROUPS:
        files.append(File.generated(config, f"api/{group.file}.md", content=_api(group)))
    files.append(File.generated(config, "examples/index.md", content=_gallery()))
    page = (ROOT / "docs" / EXPERIMENTS).read_text(encoding="utf-8")
    for name, text in _experiments(page).items():
        content = f"# {name}\n\n{text}".replace("](figures/", "](../figures/")
        files.append(File.generated(config, f"results/{name}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    return _contents(markdown) if page.file.src_uri == EXPERIMENTS else markdown


# ---- experiments ------------------------------------------------------------------------------


def _experiments(page: str) -> dict[str, str]:
    """What the page says of each experiment."""
    parts = re.split(r"^## (\w+)\n+", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _contents(page: str) -> str:
    """The head of the page, and what each experiment is about, with a link to the rest."""
    head = page.partition("\n## ")[0]
    entries = [
        f"## {name}\n\n{text.partition(chr(10))[0]} [Results](results/{name}.md)."
        for name, text in _experiments(page).items()
    ]
    return "\n\n".join([head, *entries]) + "\n"


# ---- the API ----------------------------------------------------------------------------------


def _api(group: Group) -> str:
    """A page with everything that the group's names say of themselves."""
    found = {name: value for name, value in named(group) if _has_entry(name, value)}
    entries = [_entry(name, value) for name, value in found.items()]
    return "\n\n".join([f"# {group.title}", group.about, *entries]) + "\n"


def _has_entry(name: str, value: object) -> bool:
    """Constants have no docstring; a class at the top is listed where it lives."""
    top = name.count(".") == 1
    return hasattr(value, "__qualname__") and not (top and isinstance(value, type))


def _entry(name: str, value: object) -> str:
    where = f"{value.__module__}.{value.__qualname__}"  # type: ignore[attr-defined]
    return f"::: {where}\n    options:\n      heading: {name}\n      toc_label: {name}"


# ---- examples ---------------------------------------------------------------------------------


def _gallery() -> str:
    """Every script of the folder that can be started: what it is about, what came out, its code."""
    parts = [
        "# Examples",
        "Whole programs to start from, with what they print or measure. Each is a file of the "
        "folder `examples`; the tests run them all.",
    ]
    for path in sorted(EXAMPLES.glob("*.py")):
        code = path.read_text(encoding="utf-8")
        if '__name__ == "__main__"' in code:
            parts.append(_example(path, code))
    return "\n\n".join(parts) + "\n"


def _example(path: Path, code: str) -> str:
    about = ast.get_docstring(ast.parse(code)) or ""
    title, _, text = about.partition("\n")
    parts = [f"## {path.stem.replace('_', ' ').capitalize()}", f"**{title}**", text.strip("\n")]
    results = EXAMPLES / "results" / path.stem
    if results.with_suffix(".png").exists():
        parts.append(f"![What {path.name} found]({path.stem}.png)")
    if results.with_suffix(".md").exists():
        parts.append(results.with_suffix(".md").read_text(encoding="utf-8").strip())
    body = code.partition('"""')[2].partition('"""')[2].strip()
    folded = "\n".join(f"    {line}".rstrip() for line in f"```python\n{body}\n```".splitlines())
    parts.append(f'??? example "examples/{path.name}"\n\n{folded}')
    return "\n\n".join(part for part in parts if part)
