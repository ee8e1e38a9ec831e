"""Versions in the conditions of rules are compared as versions, not as texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from weightloom.engine.errors import RuleError
from weightloom.engine.expressions import Expression
from weightloom.engine.versions import version_key

NUMBERS = st.integers(0, 12).map(str)


@st.composite
def versions(draw: st.DrawFn) -> str:
    """Versions of every form that PEP 440 has, but for epochs and local labels."""
    release = ".".join(draw(st.lists(NUMBERS, min_size=1, max_size=4)))
    stage = draw(st.sampled_from(["", "a", "b", "rc", "-alpha.", ".beta", "c", "_preview_", "PRE"]))
    stage += draw(NUMBERS | st.just("")) if stage else ""
    post = draw(st.sampled_from(["", ".post", "-r", "rev"]))
    post = post + draw(NUMBERS) if post else draw(st.sampled_from(["", "-3"]))
    dev = draw(st.sampled_from(["", ".dev", "-dev.", "dev"]))
    dev += draw(NUMBERS | st.just("")) if dev else ""
    return draw(st.sampled_from(["", "v", " "])) + release + stage + post + dev


@given(versions(), versions())
def test_the_order_is_that_of_packaging(one: str, other: str) -> None:
    assert (version_key(one) < version_key(other)) is (Version(one) < Version(other))
    assert (version_key(one) == version_key(other)) is (Version(one) == Version(other))


@pytest.mark.parametrize(
    ("version", "old"),
    [("4.57.1", True), ("5", False), ("5.0.0", False), ("5.24.0", False), ("10.1", False), ("5.0.0rc1", True)],
)
def test_a_condition_orders_versions(version: str, old: bool) -> None:
    config = {"transformers_version": version}
    assert Expression('transformers_version < "5"').value(config) is old
    assert Expression('not transformers_version >= "5.0"').value(config) is old
    assert Expression('"5" <= transformers_version <= "99"').value(config) is not old
    assert Expression('"5" > transformers_version').value(config) is old


def test_what_stands_behind_a_plus_does_not_count() -> None:
    assert version_key("5.1.0+cu12.local-1") == version_key("5.1")


@pytest.mark.parametrize("text", ["", "main", "5.x", "5..1", "5.1-"])
def test_a_text_that_is_no_version_has_no_order(text: str) -> None:
    with pytest.raises(RuleError, match="is no version"):
        Expression('transformers_version < "5"').value({"transformers_version": text})


def test_texts_are_equal_as_texts_and_numbers_keep_their_order() -> None:
    assert not Expression('version == "5.0"').value({"version": "5"})
    assert Expression("9 < layers < 11").value({"layers": 10})
    with pytest.raises(RuleError, match="cannot be worked out"):
        Expression('layers < "5"').value({"layers": 10})
