"""Every family by the conformance kit, on checkpoints and answers of an implementation that is not ours."""

from pathlib import Path

import pytest

from tests.families.all import FAMILIES
from tests.families.family import Case, Family
from tests.oracle.families.samples import referenced
from weightloom.plugins.testing import AGREEMENT, judge

pytestmark = pytest.mark.oracle

ALL = [
    pytest.param(family, case, id=f"{family.model_type}: {case.name}", marks=[pytest.mark.sample] * (number == 1))
    for family in FAMILIES
    for number, case in enumerate(family.cases)
]


@pytest.mark.parametrize(("family", "case"), ALL)
def test_it_agrees_with_the_reference(family: Family, case: Case, tmp_path: Path) -> None:
    verdict = judge(referenced(family, case), tmp_path, AGREEMENT)
    assert not verdict.broken, verdict
