"""Every block of docs/how-to/change-tensors.md is run, and says what is shown below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_blocks import run_page
from tests.guards import ROOT
from tests.runtime.models import config_of, write_model


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(Path("model"), "llama", config_of("llama", num_attention_heads=4, num_key_value_heads=2))
    assert run_page(ROOT / "docs" / "how-to" / "change-tensors.md", capsys)
