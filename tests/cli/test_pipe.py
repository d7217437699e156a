"""What the commands do when nobody listens any more."""

import subprocess
import sys


def test_a_reader_that_has_seen_enough_is_no_error_to_show():
    code = "from softorder.cli import main; raise SystemExit(main(['methods']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        error = process.stderr.read()
    assert error == b""
    assert process.returncode == 1
