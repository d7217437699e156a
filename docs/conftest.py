"""pytest runs the examples of the pages; the scripts here belong to mkdocs."""

collect_ignore_glob = ["*.py"]
