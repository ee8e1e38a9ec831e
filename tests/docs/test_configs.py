"""Every block of docs/reference/configs.md is run, and says what is shown below it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.doc_blocks import run_page
from tests.guards import ROOT
from tests.runtime.models import config_of, write_model


def test_the_page_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_model(tmp_path / "model", "llama")
    rest = config_of("llama", rope_theta="1e4", rms_norm_eps=None)
    del rest["hidden_size"]
    lines = ["// widths", ' "hidden_size": "32",', "", "", ""]
    text = "\ufeff{\n" + "\n".join(lines) + json.dumps(rest)[1:-1] + ",\n}\n"
    (folder / "config.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "docs" / "reference" / "configs.md", capsys)
