"""How pages are held against what commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_blocks import pattern, run_page


@pytest.mark.parametrize(
    ("shows", "says", "fits"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a ...\n", "a and more\n", True),
        ("a\n...\nz\n", "a\nb\nc\nz\n", True),
        ("a\n...\nz\n", "a\nb\n", False),
        ("at mine.yaml:3\n", "at mine.yaml:0\n", True),
    ],
)
def test_how_output_is_compared(shows: str, says: str, fits: bool) -> None:
    assert bool(pattern(shows).fullmatch(says)) is fits


@pytest.mark.parametrize(
    "block",
    [
        "```console\n$ weightloom arch\nanother\n```\n",
        "```console\n$ say it\n```\n```console\n$ weightloom nothing\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
    ],
)
def test_a_page_that_is_not_true_fails(block: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(block)
    with pytest.raises(AssertionError):
        run_page(page, capsys, say=lambda arguments: None)
