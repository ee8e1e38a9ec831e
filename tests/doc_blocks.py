"""Run the blocks of a page of documentation, in order: each says what is shown below it.

A block with a file's name behind its language is written there. Others are Python, commands with what they print, or
the text that the Python before them prints.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from weightloom.runtime.cli import main

# A program that a page calls: it takes the arguments, and fails as a test does.
Program = Callable[[list[str]], None]

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Line numbers of rules, and how many tests a package has, may differ from what a page shows.
_NUMBERS = re.compile(r"(?<=\.yaml:)\d+|\d+(?= passed\b| skipped\b)")


def run_page(page: Path, capsys: pytest.CaptureFixture[str], **programs: Program) -> list[Path]:
    """Run Python and commands, compare their output, write files into the current directory and give these.

    Commands are weightloom's, and those of other programs by name.
    """
    names: dict[str, Any] = {}
    written: list[Path] = []
    said = ""
    for language, file, text in blocks(page):
        if file is not None:
            written.append(Path(file))
            written[-1].parent.mkdir(parents=True, exist_ok=True)
            written[-1].write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, page.name, "exec"), names)
            said = capsys.readouterr().out
        elif language == "text":
            assert said == text
        else:
            assert language == "console"
            run_commands(text, capsys, {"weightloom": weightloom, **programs})
    return written


def blocks(page: Path) -> Iterator[tuple[str, str | None, str]]:
    """Yield (language, file name, text) of each fenced block that has a language."""
    for language, name, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        yield language, name or None, text


def run_commands(text: str, capsys: pytest.CaptureFixture[str], programs: Mapping[str, Program]) -> list[list[str]]:
    """Run each command of a console block, compare what it prints, and give their words."""
    ran = []
    for command, output in shown(text):
        words = shlex.split(command)
        programs[words[0]](words[1:])
        found = capsys.readouterr().out
        assert same_output(output, found), f"{command}\nsays\n{found}"
        ran.append(words)
    return ran


def weightloom(arguments: list[str]) -> None:
    """Run a command of ours here, which must go well."""
    assert main(arguments) == 0, arguments


def shown(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def same_output(shown: str, said: str) -> bool:
    """Tell whether a command said what a page shows of it."""
    return pattern(shown).fullmatch(_NUMBERS.sub("0", said)) is not None


def pattern(output: str) -> re.Pattern[str]:
    """`...` alone stands for any lines, at the end of a line for its rest."""
    parts = []
    for line in output.splitlines():
        text = _NUMBERS.sub("0", line)
        if text == "...":
            parts.append(r"(?:.*\n)*?")
        elif text.endswith(" ..."):
            parts.append(re.escape(text.removesuffix(" ...")) + r".*\n")
        else:
            parts.append(re.escape(text) + r"\n")
    return re.compile("".join(parts))
