"""Run the blocks of a page of documentation, in order: each says what is shown below it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from weightloom.runtime.cli import main

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page: Path, capsys: pytest.CaptureFixture[str]) -> list[Path]:
    """Run Python and commands, compare their output, write YAML files into the current directory and give these."""
    names: dict[str, Any] = {}
    written: list[Path] = []
    said = ""
    for language, file, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, page.name, "exec"), names)
            said = capsys.readouterr().out
        elif language == "text":
            assert said == text
        elif language == "console":
            command, _, shown = text.removeprefix("$ weightloom ").partition("\n")
            assert main(shlex.split(command)) == 0
            assert re.fullmatch(_pattern(shown), capsys.readouterr().out)
        else:
            assert language == "yaml"
            written.append(Path(file))
            written[-1].write_text(text, encoding="utf-8")
    return written


def _pattern(shown: str) -> str:
    """`...` alone stands for any lines."""
    return "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in shown.splitlines())
