"""Every architecture that comes with the package, by the kit: a class a family, its first cases in every run."""

import pytest

from tests.families.all import FAMILIES
from tests.families.family import Family
from weightloom.plugins.testing import Conformance, Sample


def suite(family: Family, thorough: bool) -> type[Conformance]:
    cases = family.cases[family.kit :] if thorough else family.cases[: family.kit]
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
