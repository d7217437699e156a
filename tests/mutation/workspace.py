"""A copy of the checkout that may be broken: the checkout itself is never touched."""

import shutil
import subprocess
import sys
import sysconfig
import venv
from contextlib import contextmanager
from pathlib import Path

_BOTH = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
CHECKOUT = Path(__file__).resolve().parents[2]


class Workspace:
    """The checkout's files in `folder`, installed in a small environment of their own.

    It borrows the packages of the environment that runs this, all but softorder.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self._python = self.folder / ".venv" / "bin" / "python"
        self._built_broken = False  # the library of the last mutant is still installed

    def prepare(self):
        """Copies what git knows or would add, with its changes, and installs it."""
        listed = _output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for name in filter(None, listed.split("\0")):
            self._copy(CHECKOUT / name, self.folder / name)
        if self._python.exists():
            return self.rebuild()
        venv.create(self._python.parents[1], symlinks=True)
        (self._own_packages() / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
        self.install()

    def install(self):
        """Python files are used in place afterwards."""
        pip = [sys.executable, "-m", "pip", "--python", self._python, "-q", "install", "--no-deps"]
        options = ["-c", "constraints.txt", "-C", "build-dir=build/cmake", "--force-reinstall"]
        subprocess.run([*pip, *options, "-e", "."], cwd=self.folder, check=True)

    def rebuild(self):
        """Builds what changed in csrc/: pip would build everything, if it brings its own ninja."""
        if not (shutil.which("cmake") and shutil.which("ninja")):
            return self.install()
        build = self.folder / "build" / "cmake"
        subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
        place = ["--prefix", self._own_packages()]
        subprocess.run(["cmake", "--install", build, *place], check=True, stdout=subprocess.DEVNULL)

    @contextmanager
    def broken(self, mutant):
        """With one defect, which is gone afterwards."""
        path = self.folder / mutant.file
        right = path.read_text()
        try:
            path.write_text(mutant.seed(right))
            if mutant.compiled or self._built_broken:
                self.rebuild()
                self._built_broken = mutant.compiled
            yield
        finally:
            path.write_text(right)

    def run_tests(self, *arguments):
        """What pytest prints, and whether everything passed."""
        return _pytest(self._python, self.folder, *arguments)

    def _own_packages(self):
        (folder,) = self.folder.glob(".venv/lib/python*/site-packages")
        return folder

    @staticmethod
    def _copy(source, target):
        """Leaves what is the same alone, so that little is built again."""
        if not source.exists() or (target.exists() and _same(source, target)):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def unbroken_passes(test):
    """Whether a test passes in the checkout itself."""
    return _pytest(sys.executable, CHECKOUT, test)[1]


def _pytest(python, folder, *arguments):
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    run = subprocess.run(command, cwd=folder, text=True, **_BOTH)
    return run.stdout, run.returncode == 0


def _same(one, other):
    return one.read_bytes() == other.read_bytes()


def _output(*command):
    return subprocess.check_output(command, cwd=CHECKOUT, text=True)
