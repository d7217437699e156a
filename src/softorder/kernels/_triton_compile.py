"""Compiles Triton kernels for GPUs that need not be there, and reads what the compiler says.

Every `triton.py` in a folder of kernels says what its launcher may choose:

    configurations(dtype, lengths)

yields a Configuration for each tile and each set of flags that rows of these lengths can meet, for
scores of that dtype ("fp16", "bf16", "fp32" or "fp64"); nothing for a dtype that it does not take.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from softorder.kernels._density_numbers import COMPILED, NUMBERED
from softorder.kernels._triton import compiler_options

#: Rows of every tile: each power of two that one may have, and a length that fits nowhere.
LENGTHS = (*(2**i for i in range(15)), 10**6)


@dataclass(frozen=True)
class Gpu:
    """What of a GPU limits how many warps it can hold at a time."""

    target: GPUTarget
    registers: int  # of 32 bits, per processor
    granularity: int  # in which a warp gets them
    warps: int  # per processor, at most
    shared: int  # bytes, per processor


GPUS = {
    "sm_80": Gpu(GPUTarget("cuda", 80, 32), 65536, 256, 64, 164 * 1024),
    "sm_90": Gpu(GPUTarget("cuda", 90, 32), 65536, 256, 64, 228 * 1024),
    "sm_100": Gpu(GPUTarget("cuda", 100, 32), 65536, 256, 64, 228 * 1024),
    "gfx942": Gpu(GPUTarget("hip", "gfx942", 64), 4 * 512 * 64, 8 * 64, 32, 64 * 1024),
}


@dataclass(frozen=True)
class Configuration:
    """A kernel as the launcher may call it."""

    name: str
    kernel: Any
    types: tuple[str, ...]  # of its arguments but the last, the constants
    constants: tuple[Any, ...]
    warps: int
    scores: int  # that a program holds
    reads: str  # of global memory, per score
    writes: str

    def compiled(self, gpu: Gpu) -> Binary:
        names = self.kernel.arg_names
        split = len(names) - len(self.constants)
        constants = dict(zip(names[split:], self.constants, strict=True))
        signature = dict(zip(names[:split], self.types, strict=True))
        signature |= dict.fromkeys(constants, "constexpr")
        # an AMD warp has twice as many threads
        warps = max(self.warps * 32 // gpu.target.warp_size, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = triton.compile(
                ASTSource(self.kernel, signature, constexprs=constants),
                target=gpu.target,
                options=compiler_options(warps, gpu.target.backend == "cuda"),
            )
        return Binary(made, gpu, warps)


def folders() -> tuple[str, ...]:
    """The folders of kernels that have a triton.py."""
    here = Path(__file__).parent
    return tuple(sorted(path.parent.name for path in here.glob("*/triton.py")))


def configurations(
    folder: str, dtype: str, lengths: Sequence[int] = LENGTHS
) -> Iterator[Configuration]:
    """What the launcher of a folder may choose."""
    module = importlib.import_module(f"softorder.kernels.{folder}.triton")
    found: Iterator[Configuration] = module.configurations(dtype, lengths)
    return found


def of_densities(
    of_one: Callable[[int, bool, Sequence[int]], Iterator[Configuration]],
    dtype: str,
    lengths: Sequence[int],
) -> Iterator[Configuration]:
    """Those of every density, named after it: `of_one(density, wide, lengths)`, wide for float64.

    For kernels that the half formats are converted for.
    """
    if dtype in ("fp32", "fp64"):
        for density in range(COMPILED):
            for kernel in of_one(density, dtype == "fp64", lengths):
                yield replace(kernel, name=f"{NUMBERED[density].name}: {kernel.name}")


@dataclass(frozen=True)
class Binary:
    """A compiled kernel."""

    made: Any
    gpu: Gpu
    warps: int

    @property
    def registers(self) -> int:
        """Per thread."""
        return self._usage["registers"]

    @property
    def spilled(self) -> int:
        """Bytes per thread that did not fit into registers."""
        return self._usage["spilled"]

    @property
    def shared(self) -> int:
        """Bytes per program."""
        return int(self.made.metadata.shared)

    @property
    def instructions(self) -> int:
        """In the whole program, rare branches included."""
        return self._usage["instructions"]

    @property
    def occupancy(self) -> float:
        """The share of the warps that a processor could hold."""
        gpu = self.gpu
        size = gpu.target.warp_size
        each = -(-self.registers * size // gpu.granularity) * gpu.granularity
        programs = gpu.registers // (each * self.warps)
        if self.shared:
            programs = min(programs, gpu.shared // self.shared)
        return min(programs * self.warps, gpu.warps) / gpu.warps

    @cached_property
    def _usage(self) -> dict[str, int]:
        return _nvidia(self.made) if self.gpu.target.backend == "cuda" else _amd(self.made)


def _nvidia(made: Any) -> dict[str, int]:
    usage = _dump(made, "cuobjdump", "--dump-resource-usage")
    code = _dump(made, "nvdisasm", "--print-code")
    return {
        "registers": int(_first(r"REG:(\d+)", usage)),
        "spilled": int(_first(r"STACK:(\d+)", usage)),
        "instructions": len(re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s", code, re.MULTILINE)),
    }


def _dump(made: Any, tool: str, option: str) -> str:
    folder = Path(triton.__file__).parent / "backends/nvidia/bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        done = subprocess.run(
            [folder / tool, option, file.name], capture_output=True, text=True, check=True
        )
    return done.stdout


def _amd(made: Any) -> dict[str, int]:
    # scalar registers are spilled to vector registers: only what goes to memory counts
    code: str = made.asm["amdgcn"]
    spilled = int(_first(r"\.vgpr_spill_count:\s+(\d+)", code))
    memory = int(_first(r"\.private_segment_fixed_size:\s+(\d+)", code))
    return {
        "registers": int(_first(r"\.vgpr_count:\s+(\d+)", code)),
        "spilled": max(4 * spilled, memory),
        "instructions": len(re.findall(r"^\t[a-z]+_[a-z0-9_]+", code, re.MULTILINE)),
    }


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"the compiler's report has no {pattern!r}: is this Triton too new?")
    return found[1]
