"""Every architecture that comes with the package, by the kit: some cases in every run, then all."""

from pathlib import Path

import pytest

from tests.families.all import EVERY_RUN, FAMILIES, in_every_run
from tests.families.family import Case, Family
from tests.families.samples import sample_of
from weightloom.plugins.testing import Conformance, judge
from weightloom.runtime.conformance.configs import sharding_cuts_something
from weightloom.runtime.conformance.subject import architecture_of


def first_cases(family: Family) -> tuple[Case, ...]:
    return family.cases[: family.kit] if in_every_run(family) else ()


for each in FAMILIES:
    if first := first_cases(each):
        samples = tuple(sample_of(each, case) for case in first)
        globals()[f"Test_{each.name}"] = type(f"Test_{each.name}", (Conformance,), {"samples": samples})

OTHERS = [
    pytest.param(family, case, id=f"{family.name}: {case.name}")
    for family in FAMILIES
    for case in family.cases[len(first_cases(family)) :]
]


@pytest.mark.thorough
@pytest.mark.parametrize(("family", "case"), OTHERS)
def test_every_law_holds(family: Family, case: Case, tmp_path: Path) -> None:
    verdict = judge(sample_of(family, case), tmp_path)
    assert not verdict.broken, verdict


@pytest.mark.thorough
@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
def test_every_sharding_pattern_cuts_something(family: Family) -> None:
    samples = tuple(sample_of(family, case) for case in family.cases)
    sharding_cuts_something(architecture_of(samples[0].config), samples)


def test_what_runs_every_time_is_there() -> None:
    assert {(family.model_type, family.task) for family in FAMILIES} > EVERY_RUN
