"""Brings into the site what stands elsewhere: plots, the API by its public names, the examples.

The page of experiments becomes one page for each of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from docs.made import EXAMPLES, api, contents, experiments, gallery  # noqa: E402
from docs.names import GROUPS  # noqa: E402

EXPERIMENTS = "reproduce.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    def plots(folder: Path, place: str) -> None:
        for plot in sorted(folder.glob("*.png")):
            path = f"{place}{plot.name}"
            files.append(File.generated(config, path, abs_src_path=str(plot)))

    def page(path: str, content: str) -> None:
        files.append(File.generated(config, path, content=content))

    plots(ROOT / "benchmarks" / "results", "")
    plots(EXAMPLES / "results", "examples/")
    page("examples/index.md", gallery())
    for group in GROUPS:
        page(f"api/{group.file}.md", api(group))
    all_of_them = (ROOT / "docs" / EXPERIMENTS).read_text(encoding="utf-8")
    for name, text in experiments(all_of_them).items():
        page(f"results/{name}.md", f"# {name}\n\n{text}".replace("](figures/", "](../figures/"))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    return contents(markdown) if page.file.src_uri == EXPERIMENTS else markdown
