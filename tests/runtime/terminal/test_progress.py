from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.support import checkpoint
from weightloom.runtime.terminal.progress import progress_bar


def test_no_bar_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("load", quiet=False) as progress:
        assert progress is None
    assert capsys.readouterr().err == ""


def on_a_terminal(*arguments: str) -> tuple[str, str]:
    """Run with a terminal as the error stream; give (standard output, what the terminal got)."""
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "weightloom.runtime", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=True)
        os.write(theirs, b"END")
        seen = b""
        while not seen.endswith(b"END"):
            seen += os.read(ours, 65536)
        return done.stdout, seen.removesuffix(b"END").decode()
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_bar_with_bytes_and_rate_on_a_terminal(tmp_path: Path) -> None:
    path = str(checkpoint(tmp_path / "t0"))
    out, seen = on_a_terminal("verify", path)
    assert "21 of 21" in out
    for label in ("load", "save", "compare"):
        assert f"{label}: 100%" in seen
    assert "5.02k/5.02k" in seen and "B/s" in seen
    assert on_a_terminal("verify", path, "--quiet")[1] == ""
    assert "convert: 100%" in on_a_terminal("convert", path, str(tmp_path / "out"))[1]
