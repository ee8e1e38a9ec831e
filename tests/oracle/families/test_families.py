"""Every family against an implementation that is not ours, with configs as Transformers 5 and 4 write them."""

from pathlib import Path

import pytest

from tests.families.all import FAMILIES
from tests.families.family import Case, Family
from tests.oracle.families.check import FORMS, compare, written

pytestmark = pytest.mark.oracle

ALL = [
    pytest.param(family, case, id=f"{family.model_type}: {case.name}", marks=[pytest.mark.sample] * (number == 1))
    for family in FAMILIES
    for number, case in enumerate(family.cases)
]


@pytest.mark.parametrize(("family", "case"), ALL)
def test_it_answers_as_the_reference_does(family: Family, case: Case, tmp_path: Path) -> None:
    given = written(family, case, tmp_path / "reference")
    found = {form: compare(given, form) for form in FORMS}
    assert max(each.worst for each in found.values()) <= family.tolerance, found
