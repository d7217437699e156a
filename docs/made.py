"""Pages that are made of what stands elsewhere: the public names, examples, experiments."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import softorder as so
from docs.names import Group, named

EXAMPLES = Path(__file__).parent.parent / "examples"

# ---- experiments ------------------------------------------------------------------------------

FIGURES = "\n## The papers' figures\n"  #: after the experiments


def experiments(page: str) -> dict[str, str]:
    """What the page says of each experiment."""
    parts = re.split(r"^## (\w+)\n+", page.partition(FIGURES)[0], flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def contents(page: str) -> str:
    """The head of the page, what each experiment is about, with a link to the rest, and what stands
    beside the papers' figures."""
    head = page.partition("\n## ")[0]
    entries = [
        f"## {name}\n\n{text.partition(chr(10))[0]} [Results](results/{name}.md)."
        for name, text in experiments(page).items()
    ]
    _, heading, figures = page.partition(FIGURES)
    beside = re.sub(r"\]\(#(\w+)-", r"](results/\1.md#\1-", heading + figures)
    return "\n\n".join([head, *entries]) + "\n" + beside


# ---- the API ----------------------------------------------------------------------------------


def api(group: Group) -> str:
    """A page with everything that the group's names say of themselves."""
    found = {name: value for name, value in named(group) if _has_entry(name, value)}
    entries = [_entry(name, value) for name, value in found.items()]
    return "\n\n".join([f"# {group.title}", group.about, *entries]) + "\n"


def _has_entry(name: str, value: object) -> bool:
    """Constants have no docstring; a class at the top is listed where it lives."""
    elsewhere = name.count(".") == 1 and value in vars(so.relaxations).values()
    return hasattr(value, "__qualname__") and not elsewhere


def _entry(name: str, value: object) -> str:
    where = f"{value.__module__}.{value.__qualname__}"  # type: ignore[attr-defined]
    return f"::: {where}\n    options:\n      heading: {name}\n      toc_label: {name}"


# ---- examples ---------------------------------------------------------------------------------


def gallery() -> str:
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
