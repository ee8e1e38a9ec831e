"""Print the kit's verdict on every family, by its reference: `python -m tests.oracle.families [MODEL_TYPE ...]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.families.all import FAMILIES
from tests.oracle.families.samples import referenced
from weightloom.plugins.testing import AGREEMENT, judge
from weightloom.runtime.conformance.verdict import head


def main(names: Sequence[str]) -> int:
    """Print a row a case; give 1 if a law is broken."""
    worst = 0
    print(head())
    for family in FAMILIES:
        for case in family.cases if not names or family.model_type in names else ():
            with TemporaryDirectory() as folder:
                verdict = judge(referenced(family, case), Path(folder), AGREEMENT)
            print(verdict, flush=True)
            worst |= bool(verdict.broken)
    return int(worst)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
