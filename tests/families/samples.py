"""A family's cases as samples of the conformance kit."""

from tests.families.family import Case, Family
from weightloom.plugins.testing import Sample


def sample_of(family: Family, case: Case) -> Sample:
    """Give a case as a sample whose checkpoint the kit generates."""
    return Sample(
        f"{family.name}: {case.name}",
        family.config(case),
        tolerance=family.tolerance,
        spread=family.spread,
        published=family.published,
        quantized_in=family.quantized_in,
    )
