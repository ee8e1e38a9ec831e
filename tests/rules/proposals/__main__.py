"""`python -m tests.rules.proposals [--real]`: print the table; with `--real` of published configs."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.oracle.real_configs import fetched
from tests.rules.proposals.cases import real_cases, small_cases
from tests.rules.proposals.measuring import DOUBTED, LEFT, SILENT, measured, table


def main(arguments: list[str]) -> None:
    """Measure and print."""
    with TemporaryDirectory() as place:
        cases = real_cases(fetched(Path(place))) if "--real" in arguments else small_cases()
        found = []
        for case in cases:
            found.append(each := measured(case))
            for fate in (SILENT, DOUBTED, LEFT):
                if each.examples.get(fate):
                    names = each.examples[fate]
                    print(f"{fate}: {case.family} {case.layout} ({case.sizes}): {len(names)}, {', '.join(names[:4])}")
        print("\n".join(table(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
