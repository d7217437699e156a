"""Prints every promise that is not kept, and writes open.txt.

python -m tests.laws.corners
"""

import warnings

from softorder.kernels._native import KINDS
from tests.laws.corners.cases import DTYPES, cases, write


def main():
    warnings.simplefilter("ignore")
    found = []
    for name, dtype in DTYPES.items():
        for kind in KINDS:
            for case in cases():
                for (corner, part), words in case.failures(kind, dtype).items():
                    found.append((name, kind, case, corner, part))
                    print(f"{name} {kind} {case} {corner} {part}: {words}")
    write(found)
    print(f"{len(found)} promises are not kept")


if __name__ == "__main__":
    main()
