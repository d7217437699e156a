"""What torch.compile has to know of a function, said without importing the compiler.

`torch.compiler.assume_constant_result` and `torch.compiler.disable` import all of it where they
decorate: that would make `import softorder` take more than twice as long as `import torch`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from torch._compile import _disable_dynamo

_Function = TypeVar("_Function", bound=Callable[..., Any])


def constant_in_graphs(function: _Function) -> _Function:
    """A call of it is made once, while a graph is traced, and its result stands in the graph."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def outside_graphs(function: _Function) -> _Function:
    """A graph ends before a call of it and goes on behind: its steps depend on numbers."""
    return cast(_Function, _disable_dynamo(function))
