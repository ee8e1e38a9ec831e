"""Stop strings: the same text whatever the pieces, nothing of a stop string ever given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine.errors import UsageError
from weightloom.runtime.running.stopping import refuse_empty, until

texts = st.text("ab\n", max_size=12)


@given(st.lists(texts, max_size=8), st.lists(st.text("ab\n", min_size=1, max_size=3), max_size=3))
def test_the_text_ends_before_the_first_stop_string(pieces: list[str], stops: list[str]) -> None:
    whole = "".join(pieces)
    wanted = min((whole.split(stop, 1)[0] for stop in stops), key=len, default=whole)
    assert "".join(until(pieces, stops)) == wanted


def test_what_cannot_be_a_stop_string_comes_at_once() -> None:
    assert list(until(["ab", "c", "<", "en", "d>", "never"], ["<end>"])) == ["ab", "c"]
    assert list(until(["a<", "b"], ["<end>"])) == ["a", "<b"]


def test_empty_ones_are_refused() -> None:
    for wrong in ([""], "text"):
        with pytest.raises(UsageError, match="stop is"):
            refuse_empty(wrong)
