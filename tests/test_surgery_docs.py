"""Every block of docs/surgery.md is run, and says what is shown below it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.guards import ROOT
from tests.runtime.models import config_of, write_model
from weightloom.runtime.cli import main

PAGE = ROOT / "docs" / "surgery.md"
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pattern(shown: str) -> str:
    """`...` alone stands for any lines."""
    return "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in shown.splitlines())


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(Path("model"), "llama", config_of("llama", num_attention_heads=4, num_key_value_heads=2))
    names: dict[str, Any] = {}
    said = ""
    for language, file, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, PAGE.name, "exec"), names)
            said = capsys.readouterr().out
        elif language == "text":
            assert said == text
        elif language == "console":
            command, _, shown = text.removeprefix("$ weightloom ").partition("\n")
            assert main(shlex.split(command)) == 0
            assert re.fullmatch(pattern(shown), capsys.readouterr().out)
        else:
            assert language == "yaml"
            Path(file).write_text(text, encoding="utf-8")
