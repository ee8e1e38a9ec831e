"""Every architecture that comes with the package, by the kit: a class a family, some of them in every run."""

import pytest

from tests.families.all import EVERY_RUN, FAMILIES, in_every_run
from tests.families.family import Family
from weightloom.plugins.testing import Conformance, Sample


def suite(family: Family, thorough: bool) -> type[Conformance]:
    first = family.kit if in_every_run(family) else 0
    cases = family.cases[first:] if thorough else family.cases[:first]
    samples = tuple(
        Sample(
            f"{family.name}: {case.name}",
            family.config(case),
            tolerance=family.tolerance,
            spread=family.spread,
            published=family.published,
            quantized_in=family.quantized_in,
        )
        for case in cases
    )
    made = type(f"Test{'All' * thorough}{family.name}", (Conformance,), {"samples": samples})
    return pytest.mark.thorough(made) if thorough else made


for each in FAMILIES:
    for deep in (False, True):
        globals()[f"Test_{each.name}_{deep}"] = suite(each, deep)


def test_what_runs_every_time_is_there() -> None:
    assert {(family.model_type, family.task) for family in FAMILIES} > EVERY_RUN
