"""Every block of docs/explanation/ties.md is run, and says what is shown below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.fixtures import t0
from tests.doc_blocks import run_page
from tests.guards import ROOT
from tests.runtime.support import T0_CONFIG, checkpoint
from weightloom.rules import lint_rules


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    file = t0()
    file["lm_head.weight"] = file["model.embed_tokens.weight"].copy()
    checkpoint(Path("tied-model"), file, {**T0_CONFIG, "tie_word_embeddings": True})
    (rules,) = run_page(ROOT / "docs" / "explanation" / "ties.md", capsys)
    assert not lint_rules(rules)
