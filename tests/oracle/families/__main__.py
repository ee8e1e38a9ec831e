"""Print how every family compares with its reference: `python -m tests.oracle.families [MODEL_TYPE ...]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.families.all import FAMILIES
from tests.families.family import Case, Family
from tests.oracle.families.check import FORMS, compare, written


def main(names: Sequence[str]) -> int:
    """Print a row a family; give 1 if one differs."""
    chosen = [family for family in FAMILIES if not names or family.model_type in names]
    worst = 0
    print(f"{'family':<30}{'reference':<35}{'whole':>9}{'cached':>9}{'4 bits':>9}")
    for family in chosen:
        for case in family.cases:
            with TemporaryDirectory() as folder:
                row, fine = _row(family, case, Path(folder))
            print(row, flush=True)
            worst |= not fine
    return int(worst)


def _row(family: Family, case: Case, folder: Path) -> tuple[str, bool]:
    try:
        given = written(family, case, folder / "reference")
        found = [compare(given, form) for form in FORMS]
    except Exception as error:
        return f"{family.model_type:<30}{case.name}: {type(error).__name__}: {str(error)[:300]}", False
    numbers = [max(getattr(each, part) for each in found) for part in ("whole", "cached", "packed")]
    by = family.relaid or family.class_name or family.peer
    fine = max(numbers) <= family.tolerance
    row = f"{family.name:<30}{by:<35}" + "".join(f"{number:>9.1e}" for number in numbers)
    return f"{row}  {case.name}{'' if fine else '  DIFFERS'}", fine


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
