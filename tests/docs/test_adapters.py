"""Every block of the pages on adapters is run, and says what is shown below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.test_adapter_load import adapter, pair
from tests.doc_blocks import run_page
from tests.guards import ROOT
from tests.runtime.models import write_model
from weightloom.rules import lint_rules


@pytest.mark.parametrize("page", ["map-an-adapter-or-a-head", "use-adapters"])
def test_the_page_is_true(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "base", "llama")
    for seed, name in enumerate(("french", "polite")):
        adapter(tmp_path / name, pair(seed=seed))
    written = run_page(ROOT / "docs" / "how-to" / f"{page}.md", capsys)
    assert [lint_rules(file) for file in written] == [[] for _ in written]
