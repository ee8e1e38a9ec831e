"""Every family in each of its layouts: rows stand for the names of both sides, each once, and none is made up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from tests.families.all import FAMILIES
from tests.rules.proposals.cases import small_cases
from weightloom.runtime.picture.drawing import draw
from weightloom.runtime.picture.picture import Row

EVERY_RUN = ("gpt2", "mixtral", "deepseek_v3", "qwen3_next", "mamba2")


def names(row: Row) -> Iterator[str]:
    """Write the names that a row stands for."""
    for box in row.boxes:
        for numbers in product(*([n for a, b, step in axis for n in range(a, b + 1, step)] for axis in box)):
            texts = (f"{number}{part}" for number, part in zip(numbers, row.parts[1:], strict=True))
            yield row.parts[0] + "".join(texts)


def names_of(rows: Iterable[Row]) -> list[str]:
    return sorted(name for row in rows for name in names(row))


def check(model_types: Iterable[str]) -> int:
    wanted, drawn = set(model_types), 0
    for case in small_cases(family for family in FAMILIES if family.model_type in wanted):
        found = draw(case.truth, case.family, facts={}, wanted=case.truth.params)
        place = f"{case.family} {case.layout}"
        assert names_of(found.left) == sorted(case.truth.sources), place
        assert names_of(found.right) == sorted(case.truth.params), place
        assert sum(row.nbytes for row in found.left) == found.totals.tensor_bytes, place
        assert found.loads == case.truth.ok() and found.to_json()["schema"] == 1, place
        drawn += 1
    return drawn


def test_rows_are_the_names() -> None:
    assert check(EVERY_RUN) > len(EVERY_RUN)


@pytest.mark.thorough
def test_rows_are_the_names_of_all_families() -> None:
    assert check(family.model_type for family in FAMILIES) > len(FAMILIES)
