"""Adapters that PEFT wrote, beside a running model and fused, against PEFT's merged one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.oracle.logits import Array, whole
from tests.oracle.peft_adapters.made import CASES, Case, make
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.loading.loading import load

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

CLOSE = 1e-4
Row = tuple[str, float, float, float, float]


@pytest.fixture(scope="module")
def rows() -> Iterator[list[Row]]:
    """Collect what each case measured, and print it at the end (seen with `-s`)."""
    found: list[Row] = []
    yield found
    print(f"\n{'adapter':52} {'change':>9} {'beside':>9} {'fused':>9} {'PEFT own':>9}")
    for name, *figures in found:
        print(f"{name:52}", *(f"{figure:9.1e}" for figure in figures))


def off(made: Array, wanted: Array) -> float:
    """Give the largest difference, as a share of the largest number where that is above 1."""
    return float(np.abs(made - wanted).max() / max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.sample) if c.sample else c for c in CASES], ids=lambda case: case.name
)
def test_logits_are_those_of_the_merged_model(case: Case, rows: list[Row], tmp_path: Path) -> None:
    made = make(case, tmp_path)
    m = load(made.base, adapter=[(path, 1.0) for path in made.adapters])
    convert(made.base, Order(tmp_path / "fused", adapters=tuple((path, 1.0) for path in made.adapters)), Wish())
    beside, fused = whole(m.model, made.tokens), whole(load(tmp_path / "fused").model, made.tokens)
    figures = tuple(off(each, made.merged) for each in (made.plain, beside, fused, made.running))
    rows.append((case.name, *figures))  # type: ignore[arg-type]
    assert figures[0] > 1e-2
    assert max(figures[1:3]) <= CLOSE
    assert not [note for note in m.notes if "adapter_config.json" in note]
    assert m.adapters is not None
    m.adapters.use()
    assert np.array_equal(whole(m.model, made.tokens), whole(load(made.base).model, made.tokens))
