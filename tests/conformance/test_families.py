"""Every architecture that comes with the package, by the kit: a class a family, some of them in every run."""

import pytest

from tests.families.all import EVERY_RUN, FAMILIES, in_every_run
from tests.families.family import Case, Family
from tests.families.samples import sample_of
from weightloom.plugins.testing import Conformance


def suite(family: Family, cases: tuple[Case, ...]) -> type[Conformance]:
    samples = tuple(sample_of(family, case) for case in cases)
    return type(f"Test{family.name}", (Conformance,), {"samples": samples})


for each in FAMILIES:
    first = each.kit if in_every_run(each) else 0
    if each.cases[:first]:
        globals()[f"Test_{each.name}"] = suite(each, each.cases[:first])
    if each.cases[first:]:
        globals()[f"Test_{each.name}_thorough"] = pytest.mark.thorough(suite(each, each.cases[first:]))


def test_what_runs_every_time_is_there() -> None:
    assert {(family.model_type, family.task) for family in FAMILIES} > EVERY_RUN
