"""Opening the page in a browser without the token in a command line, which others on the machine could read."""

from __future__ import annotations

import html
import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def opened_in_browser(url: str) -> Iterator[None]:
    """Open a page that leads on to the URL, readable by its owner alone; it is removed at the end."""
    handle, name = tempfile.mkstemp(prefix="weightloom-studio-", suffix=".html")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(url)}">')
        webbrowser.open(Path(name).as_uri())
        yield
    finally:
        with suppress(OSError):
            os.unlink(name)
