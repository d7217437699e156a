"""Shows docstrings as meant: examples as code, names as links, <x, y> as an inner product."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import indent
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent.parent))

from docs.names import GROUPS, named

#: where a public name is defined, which is what its entry is called
_WHERE = {
    name: f"{value.__module__}.{value.__qualname__}"
    for group in GROUPS
    for name, value in named(group)
    if hasattr(value, "__qualname__")
}


class Examples(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if not obj.docstring:
            return
        text, prompt, code = obj.docstring.value.partition(">>>")
        text = re.sub(r"<(\w+, \w+)>", r"⟨\1⟩", text)
        home = ".".join(obj.path.split(".")[:2]).replace("softorder", "so", 1)
        text = re.sub(r"`([\w.]+)(\([^`]*\))?`", lambda found: _linked(found, home), text)
        examples = f"Examples:\n{indent(prompt + code, '    ')}" if prompt else ""
        obj.docstring.value = text + examples


def _linked(found: re.Match[str], home: str) -> str:
    """A public name, given whole or as one of the same module, as a link to its entry."""
    for name in (found[1], f"{home}.{found[1]}", f"so.{found[1]}"):
        if name in _WHERE:
            return f"[{found[0]}][{_WHERE[name]}]"
    return found[0]
