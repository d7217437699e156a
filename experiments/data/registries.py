"""Where a package registry keeps a file, asked of the package managers, which know the mirrors.

npm:NAME@VERSION    the package as npm has it
pypi:FILE           a wheel or an sdist, by its file name
debian:NAME         the Debian package that apt would install
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from urllib.parse import unquote, urlsplit

_SECONDS = 120


def resolve(link: str) -> str:
    """The URL of a file; a link of another scheme is one already.

    Raises:
        OSError: the manager is not installed, or does not know the package.
    """
    scheme, _, name = link.partition(":")
    ask = {"npm": _npm, "pypi": _pypi, "debian": _debian}.get(scheme)
    if ask is None:
        return link
    url = ask(name)
    if url is None:
        raise OSError(f"{scheme} has no {name}")
    return url


def file_name(url: str) -> str:
    """What the file is called, without the folders of its URL."""
    return unquote(urlsplit(url).path).rsplit("/", 1)[-1]


def _npm(name: str) -> str | None:
    return _answer("npm", "view", name, "dist.tarball").strip() or None


def _pypi(file: str) -> str | None:
    project = re.split(r"-\d", file)[0]
    said = _answer(sys.executable, "-m", "pip", "index", "versions", project, "-vv")
    links = re.findall(r"Found link (\S+?)(?:#\S*)? ", said)
    return next((link for link in links if file_name(link) == file), None)


def _debian(name: str) -> str | None:
    found = re.match(r"'(\S+)'", _answer("apt-get", "download", "--print-uris", name))
    return found and found[1]


def _answer(command: str, *arguments: str) -> str:
    program = shutil.which(command)
    if program is None:
        raise OSError(f"{command} is not installed")
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    return done.stdout
