"""Prints every promise that is not kept.

python -m tests.laws.corners
"""

import sys
import warnings

from softorder.kernels._native import KINDS
from tests.laws.corners.cases import DTYPES, cases


def main():
    warnings.simplefilter("ignore")
    count = 0
    for name, dtype in DTYPES.items():
        for kind in KINDS:
            for case in cases():
                for (corner, part), words in case.failures(kind, dtype).items():
                    count += 1
                    print(f"{name} {kind} {case} {corner} {part}: {words}")
    print(f"{count} promises are not kept")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
