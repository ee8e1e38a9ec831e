"""A browser is led to the page by a file of its owner's, so that the token is in no command line."""

from __future__ import annotations

import stat
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from weightloom.runtime.studio.opening import opened_in_browser


def test_the_address_is_in_a_file_that_others_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    with opened_in_browser("http://127.0.0.1:1/token/"):
        (given,) = opened
        file = Path(urlsplit(given).path)
        assert "token" not in given and "http://127.0.0.1:1/token/" in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.exists()
