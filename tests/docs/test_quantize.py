"""Every block of docs/how-to/quantize.md is run, and says what is shown below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_blocks import run_page
from tests.guards import ROOT
from tests.runtime.quantizing.models import packable


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    packable(Path("model"))
    assert run_page(ROOT / "docs" / "how-to" / "quantize.md", capsys)
