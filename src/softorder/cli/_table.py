"""A table of strings that prints lined up, and as Markdown or HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Table:
    """The first column is text and stands left; the others stand right.

    >>> table = Table(["method", "ms"])
    >>> table.add("softmax", "0.10")
    >>> table.add("sort", "12.50")
    >>> print(table.text())
    method      ms
    -------  -----
    softmax   0.10
    sort     12.50
    """

    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        self.rows.append(cells)

    def text(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        rule = ["-" * width for width in widths]
        return "\n".join(_line(cells, widths) for cells in (self.columns, rule, *self.rows))

    def markdown(self) -> str:
        rule = ["---"] + ["---:"] * (len(self.columns) - 1)
        head, *body = (map(_cell, cells) for cells in (self.columns, *self.rows))
        return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *body))

    def html(self) -> str:
        body = "\n".join(_html_row(cells, "td") for cells in self.rows)
        head = _html_row(self.columns, "th")
        return f"<table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def plain(text: str) -> str:
    """Text for a page of Markdown, in which it opens no tag and leads nowhere.

    >>> plain("<b>p < 0.05</b>, [here](there)")
    '&lt;b>p < 0.05&lt;/b>, [here]\\\\(there)'
    """
    text = re.sub(r"(?m)^(\s*)\[(?=[^\]]*\]:)", r"\1\[", text)  # where a link by name would lead
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text).replace("](", r"]\(")


def _cell(text: str) -> str:
    """The same in a table, whose lines and columns it keeps."""
    return plain(text).replace("|", r"\|").replace("\n", " ")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
    return "  ".join(padded).rstrip()


def _html_row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
