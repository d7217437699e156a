"""`python -m softorder` is the command `softorder`."""

import sys

from softorder.cli import main

sys.exit(main())
