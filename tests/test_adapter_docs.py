"""Every block of docs/adapters-and-heads.md is run, and says what is shown below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cases.test_adapter_load import adapter, pair
from tests.guards import ROOT
from tests.runtime.models import write_model
from weightloom.rules import lint_rules

PAGE = ROOT / "docs" / "adapters-and-heads.md"
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "base", "llama")
    for seed, name in enumerate(("french", "polite")):
        adapter(tmp_path / name, pair(seed=seed))
    names: dict[str, Any] = {}
    said = ""
    for language, file, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, PAGE.name, "exec"), names)
            said = capsys.readouterr().out
        elif language == "text":
            assert said == text
        else:
            assert language == "yaml"
            Path(file).write_text(text, encoding="utf-8")
            assert lint_rules(file) == []
