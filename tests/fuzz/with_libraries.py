"""Runs a module on compiled kernels of another folder than that of the installation.

python -m tests.fuzz.with_libraries FOLDER MODULE [ARGUMENTS]
"""

import runpy
import sys
from pathlib import Path

from softorder.kernels import _native


def use(folder):
    """Opens the library of this folder, in a process that has not opened any."""
    _native.library_path = lambda name: next(Path(folder).glob(f"libsoftorder_{name}.*"), None)
    _native.library()


if __name__ == "__main__":
    _, folder, module, *arguments = sys.argv
    use(folder)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
