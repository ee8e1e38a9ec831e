"""Pages that need nothing to begin with: every block is run. And what a page names of the repository is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.doc_blocks import run_page
from tests.guards import ROOT

DOCS = ROOT / "docs"
RUN = ["explanation/index-map", "explanation/rules", "explanation/scope"]
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.mark.parametrize("name", RUN)
def test_the_page_is_true(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(DOCS / f"{name}.md", capsys)


def named(page: Path) -> list[tuple[str, str]]:
    """Give the files and folders of the repository that a page names, each with the test that it names there."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"`((?:tests|benchmarks|engine|rules|plugins|runtime)/[\w/.]*)(?:::(\w+))?", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_what_a_page_names_is_there(page: Path) -> None:
    for name, test in named(page):
        assert (ROOT / name).exists(), name
        assert not test or f"\ndef {test}(" in (ROOT / name).read_text(encoding="utf-8"), test


def test_every_law_names_the_tests_that_hold_it() -> None:
    sections = re.split(r"^## ", (DOCS / "explanation" / "laws.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    files = sorted((ROOT / "tests" / "laws").glob("test_law_*.py"))
    assert [section[0] for section in sections[:-1]] == [file.name.split("_")[2] for file in files]
    for section, file in zip(sections, files, strict=False):
        assert f"`tests/laws/{file.name}::" in section
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    titles = re.findall(r"^(\d)\. \*\*(.+?)\.\*\* ", contributing, re.MULTILINE)
    assert [section.partition("\n")[0] for section in sections[:-1]] == [f"{law}. {title}" for law, title in titles]
