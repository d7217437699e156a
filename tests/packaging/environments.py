"""Virtual environments that know nothing of this one."""

import os
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Environment:
    """A virtual environment in an empty folder.

    One with `compiler=False` finds no program but its own. `shared` is another one, whose packages
    are seen here, too: torch takes longer to install than all the rest.
    """

    def __init__(self, folder, *, compiler=True, shared=None):
        venv.create(folder, with_pip=True, symlinks=True)
        self._bin = Path(folder, "bin")
        self.packages = next(Path(folder).glob("lib/python*/site-packages"))
        if shared:
            (self.packages / "shared.pth").write_text(f"{shared.packages}\n")
        hidden = ("CC", "CXX", "PYTHONPATH", "VIRTUAL_ENV")
        self._variables = {
            name: value
            for name, value in os.environ.items()
            if name not in hidden and not name.startswith("SOFTORDER_")
        }
        path = [str(self._bin)] + ([os.environ["PATH"]] if compiler else [])
        self._variables["PATH"] = os.pathsep.join(path)

    def install(self, *requirements):
        """What pip and the build said."""
        pinned = ("-c", str(ROOT / "constraints.txt"))
        return self.python("-m", "pip", "install", "--verbose", *pinned, *requirements)

    def install_file(self, path):
        """The same for a wheel or an sdist; pip must not take an earlier build of it."""
        return self.install("--no-cache-dir", str(path))

    def python(self, *arguments, **variables):
        """Runs Python, in a folder that holds nothing, and returns what it printed."""
        result = subprocess.run(
            [str(self._bin / "python"), *arguments],
            env={**self._variables, **variables},
            cwd=self._bin.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert result.returncode == 0, result.stdout
        return result.stdout
