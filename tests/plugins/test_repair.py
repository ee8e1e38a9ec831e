"""What is repaired in a config, and a null that says something to a family."""

from dataclasses import dataclass
from typing import Any

import pytest

from weightloom.plugins.configs.repair import Repaired, repaired_numbers


@dataclass(frozen=True)
class Plain:
    """A family to which a base of null is one that lacks."""


@dataclass(frozen=True)
class Turning:
    """A family that does not turn where the base is null."""

    rope_theta: float | None = 10000.0


@pytest.mark.parametrize("content", [{"rope_theta": None}, {"rope_parameters": {"rope_theta": None}}])
def test_a_null_stays_where_a_family_reads_it(content: dict[str, Any]) -> None:
    assert repaired_numbers(Turning, content) == Repaired(content)
    (repair,) = repaired_numbers(Plain, content).repairs
    assert repair.field.endswith("rope_theta")


def test_a_number_in_quotes_is_repaired_all_the_same() -> None:
    found = repaired_numbers(Turning, {"rope_parameters": {"rope_theta": "5e3"}})
    assert found.content == {"rope_parameters": {"rope_theta": 5000.0}}
    assert [repair.field for repair in found.repairs] == ["rope_parameters.rope_theta"]
