"""Repairs of a config's text: each place is named, quoted text is never touched, and what is saved is strict JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weightloom.runtime.configs.config_text import repaired

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def strict(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def nan_as_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: nan_as_none(item) for key, item in value.items()}
    if isinstance(value, list):
        return [nan_as_none(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_any_value_that_python_writes_reads_the_same_and_is_saved_as_json(value: dict[str, Any]) -> None:
    text = json.dumps(value, indent=1)
    found = repaired(text)
    assert found.readable == text
    assert strict(found.strict) == nan_as_none(value)
    assert bool(found.repairs) == (found.strict != text)


@given(VALUES, st.sampled_from(("\n", " ", "")))
def test_trailing_commas_and_a_mark_are_left_out(value: Any, gap: str) -> None:
    body = json.dumps(nan_as_none(value), ensure_ascii=False)
    found = repaired(f'\ufeff{{"a": [{body},{gap}],{gap}}}')
    assert strict(found.strict) == {"a": [nan_as_none(value)]}
    assert len([each for each in found.repairs if "comma" in each]) == 2
    assert found.repairs[0] == "a byte-order mark is left out"


def test_numbers_inside_texts_stay_and_each_repair_says_its_line() -> None:
    text = '{"limit": [0.0, Infinity],\n "lo": -Infinity,\n "x": NaN, "_name_or_path": "Infinity-7B, NaN,]",\n}'
    found = repaired(text)
    values = json.loads(found.readable)
    assert values["limit"] == [0.0, math.inf] and values["lo"] == -math.inf and math.isnan(values["x"])
    assert values["_name_or_path"] == "Infinity-7B, NaN,]"
    assert strict(found.strict) == {**values, "x": None}
    assert found.repairs == (
        "Infinity is no JSON; it is saved as 1e999 (line 1)",
        "-Infinity is no JSON; it is saved as -1e999 (line 2)",
        "NaN is no JSON; it is saved as null (line 3)",
        "a comma after the last item is left out (line 3)",
    )


def test_comments_and_words_of_python_are_repaired_and_named() -> None:
    text = '{"a": True, // why "not"\n "b": [None, False,/* x, ]\n */ ], "c": "True // /* None */",}'
    found = repaired(text)
    assert found.readable == found.strict
    assert strict(found.strict) == {"a": True, "b": [None, False], "c": "True // /* None */"}
    assert found.repairs == (
        "True is no JSON; it is read as true (line 1)",
        "a comment is left out (line 1)",
        "None is no JSON; it is read as null (line 2)",
        "False is no JSON; it is read as false (line 2)",
        "a comma after the last item is left out (line 2)",
        "a comment is left out (line 2)",
        "a comma after the last item is left out (line 3)",
    )


def test_a_text_of_many_open_ends_takes_no_longer_than_it_is_long() -> None:
    """A pattern that tried every way to end a comment would not end here."""
    assert repaired('{"a": [1,' + "/* */" * 5000 + "}").repairs[0] == "a comma after the last item is left out (line 1)"
    assert repaired("[1," + "/* */" * 5000 + "2 /*").readable == "[1,2 /*"


def test_what_is_broken_otherwise_comes_back_as_it_is() -> None:
    for text in (
        "",
        "{",
        '{"a": "b',
        "[1,,2]",
        "{'a': 1}",
        '{"a": Trues, "b": xNone}',
        "{} /* open",
        "{} / x",
        "# {}",
        '{"a": Infinit}',
        '{"a": NaNa}',
    ):
        assert repaired(text).readable == text == repaired(text).strict
