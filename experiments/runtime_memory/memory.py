"""The peak of small calls, too."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable

from benchmarks.memory import growth


def peak(call: Callable[[], object]) -> float:
    """Bytes that the process grows by, the less of two measurements: other things only add.

    What glibc keeps for later is given back first, because a call that is served from there would
    seem to need nothing. The call has to have been made before, so that nothing is initialised. NaN
    where this cannot be measured.
    """
    if sys.platform != "linux":
        return math.nan
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except AttributeError:  # another C library
        return math.nan
    return min(_grown(call, trim) for _ in range(2))


def _grown(call: Callable[[], object], trim: Callable[[int], object]) -> int:
    trim(0)
    return growth(call)
