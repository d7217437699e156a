"""Before a release: makes the links of README.md absolute, and names the project's pages.

    python .github/addresses.py https://host/owner/softorder v1.2.3

A package index shows the README alone, where a link to docs/topk.md leads nowhere. Where the
repository is, only the machine that releases it knows: no address is written down in it.
"""

import re
import sys
from pathlib import Path

_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(text: str, repository: str, tag: str) -> str:
    """The text of a README, its links to files of the repository as it was at the tag."""
    return _LINK.sub(rf"]({repository}/blob/{tag}/\1)", text)


def urls(repository: str, tag: str) -> str:
    """What pyproject.toml says of the project's pages."""
    pages = {
        "Repository": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/index.md",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    lines = [f'{name} = "{address}"' for name, address in pages.items()]
    return "\n".join(["", "[project.urls]", *lines, ""])


def main(repository: str, tag: str) -> None:
    readme, project = Path("README.md"), Path("pyproject.toml")
    text = readme.read_text(encoding="utf-8")
    readme.write_text(absolute(text, repository, tag), encoding="utf-8")
    with project.open("a", encoding="utf-8") as file:
        file.write(urls(repository, tag))


if __name__ == "__main__":
    main(*sys.argv[1:])
