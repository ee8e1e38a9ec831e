"""Every block of docs/reference/tokenizers.md is run, and says what is shown below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_blocks import run_page
from tests.guards import ROOT
from tests.runtime.models import runnable


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    runnable(Path("model"))
    run_page(ROOT / "docs" / "reference" / "tokenizers.md", capsys)
