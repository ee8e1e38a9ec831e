"""How many threads read: as asked, else by the environment, else as usual."""

from __future__ import annotations

import pytest

from weightloom.engine import UsageError
from weightloom.engine.reading.threads import DEVICE, HOST, VARIABLE, thread_count


def test_what_is_asked_for_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert (thread_count(None), thread_count(None, DEVICE), thread_count(1)) == (HOST, DEVICE, 1)
    monkeypatch.setenv(VARIABLE, "7")
    assert (thread_count(None), thread_count(None, DEVICE), thread_count(2)) == (7, 7, 2)


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "٣"])
def test_an_environment_that_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UsageError, match=VARIABLE) as caught:
        thread_count(None)
    assert caught.value.field == VARIABLE and thread_count(3) == 3


def test_no_threads_cannot_read() -> None:
    with pytest.raises(UsageError, match="0 threads"):
        thread_count(0)
