"""Brings the plots of the benchmark into the site; its tables are included as snippets."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for plot in sorted(RESULTS.glob("*.png")):
        files.append(File.generated(config, plot.name, abs_src_path=str(plot)))
    return files
