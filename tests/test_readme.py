"""Every command of the README is run, and says what the README shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import minilm
from tests.guards import ROOT
from weightloom.runtime.cli import COMMANDS, RULES_COMMANDS, main

README = (ROOT / "README.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE_NUMBER = re.compile(r"(\.yaml):\d+")


def blocks() -> Iterator[tuple[str, str | None, str]]:
    """Yield (language, file name, text) of each fenced block."""
    for language, name, text in _BLOCK.findall(README):
        yield language, name or None, text


def shown(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def pattern(output: str) -> re.Pattern[str]:
    """`...` alone stands for any lines, at the end of a line for its rest; line numbers of rules may differ."""
    parts = []
    for line in output.splitlines():
        text = _LINE_NUMBER.sub(r"\1:0", line)
        if text == "...":
            parts.append(r"(?:.*\n)*?")
        elif text.endswith(" ..."):
            parts.append(re.escape(text.removesuffix(" ...")) + r".*\n")
        else:
            parts.append(re.escape(text) + r"\n")
    return re.compile("".join(parts))


@pytest.mark.real
def test_the_readme_is_true(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("MiniLM").symlink_to(minilm.fetch(request.config.cache.mkdir("minilm")))
    ran = set()
    for language, name, text in blocks():
        if name is not None:
            Path(name).write_text(text, encoding="utf-8")
        for command, output in shown(text) if language == "console" else ():
            program, *arguments = shlex.split(command)
            assert program == "weightloom" and main(arguments) == 0, command
            found = _LINE_NUMBER.sub(r"\1:0", capsys.readouterr().out)
            assert pattern(output).fullmatch(found), f"{command}\nsays\n{found}"
            ran.add(arguments[0])
    assert ran == {"rules", *(command.name for command in COMMANDS)}


def test_the_readme_names_every_command() -> None:
    for command in COMMANDS:
        assert f"weightloom {command.name} " in README
    for command in RULES_COMMANDS:
        assert f"rules {command.name}" in README


def test_the_readme_names_every_exit_code() -> None:
    assert re.findall(r"^\| (\d+) \|", README, re.MULTILINE) == ["0", "1", "2", "3", "4", "70", "130"]


@pytest.mark.parametrize(
    ("shows", "says", "fits"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a ...\n", "a and more\n", True),
        ("a\n...\nz\n", "a\nb\nc\nz\n", True),
        ("a\n...\nz\n", "a\nb\n", False),
    ],
)
def test_how_output_is_compared(shows: str, says: str, fits: bool) -> None:
    assert bool(pattern(shows).fullmatch(says)) is fits
