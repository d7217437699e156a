"""Brings the plots of benchmark and examples into the site; tables are included as snippets."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
HOMES = ("benchmarks", "examples")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for plot in sorted(plot for home in HOMES for plot in (ROOT / home).glob("results/*.png")):
        files.append(File.generated(config, plot.name, abs_src_path=str(plot)))
    return files
