"""Expressions over a config: items of lists, and what is refused."""

from __future__ import annotations

import pytest

from weightloom.engine.errors import RuleError
from weightloom.engine.expressions import Expression

CONFIG = {"factors": [0.5, 2], "inner": {"sizes": [3, 4]}, "text": "ab"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("factors[0]", 0.5), ("inner.sizes[1] * 2", 8), ("factors[0] == 0.5 and inner.sizes[0] > 2", True)],
)
def test_an_item_by_number(text: str, value: object) -> None:
    assert Expression(text).value(CONFIG) == value


@pytest.mark.parametrize(("size", "value"), [(7, 7), (None, 4)])
def test_one_of_two(size: int | None, value: int) -> None:
    found = Expression("size if size != null else hidden // 2").value({"size": size, "hidden": 8})
    assert found == value


@pytest.mark.parametrize("text", ["factors[2]", "text[0]", "inner[0]", "lacking[0]"])
def test_an_item_that_is_not_there(text: str) -> None:
    with pytest.raises(RuleError, match="has no item"):
        Expression(text).value(CONFIG)


@pytest.mark.parametrize("text", ["factors[-1]", "factors[0:1]", "factors[n]", "[1, 2][0]", "factors[0][0]", "a[True]"])
def test_items_are_of_a_field_and_by_number(text: str) -> None:
    with pytest.raises(RuleError, match="not allowed"):
        Expression(text)


def test_the_names_are_those_of_the_fields() -> None:
    assert Expression("inner.sizes[1] * factors[0]").names == ("factors", "inner.sizes")
