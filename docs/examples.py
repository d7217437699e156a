"""Shows docstrings as meant: examples as code, <x, y> as an inner product, not as a tag."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any

import griffe


class Examples(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if not obj.docstring:
            return
        text, prompt, code = obj.docstring.value.partition(">>>")
        text = re.sub(r"<(\w+, \w+)>", r"⟨\1⟩", text)
        examples = f"Examples:\n{indent(prompt + code, '    ')}" if prompt else ""
        obj.docstring.value = text + examples
