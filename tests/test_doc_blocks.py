"""How pages are held against what commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_blocks import run_page, same_output
from tests.doc_shell import Shell, change, outside, walk


@pytest.mark.parametrize(
    ("shows", "says", "fits"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a ...\n", "a and more\n", True),
        ("a\n...\nz\n", "a\nb\nc\nz\n", True),
        ("a\n...\nz\n", "a\nb\n", False),
        ("at mine.yaml:3\n", "at mine.yaml:8\n", True),
        ("1 failed, 3 passed in ...\n", "1 failed, 4 passed in 2s\n", True),
        ("1 failed, 3 passed in ...\n", "2 failed, 3 passed in 2s\n", False),
    ],
)
def test_how_output_is_compared(shows: str, says: str, fits: bool) -> None:
    assert same_output(shows, says) is fits


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


def walked(text: str, folder: Path) -> int:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return walk(page, Shell(folder, outside()), folder / "state")


def test_a_shell_goes_on_where_it_was(tmp_path: Path) -> None:
    page = """```console
$ mkdir inner
$ cd inner
$ export WORD=there
```
```text file
old
```
```diff file
-old
+new
```
```console
$ echo $WORD; cat file
there
new
$ false
$ echo $?
1
```
"""
    assert walked(page, tmp_path) == 6
    assert (tmp_path / "inner" / "file").read_text() == "new\n"


@pytest.mark.parametrize(
    "block",
    [
        "```console\n$ echo a\nb\n```\n",
        "```console\n$ false\n$ true\n```\n",
        "```console\n$ false\n```\n",
        "```python\n1\n```\n",
    ],
)
def test_a_walk_that_is_not_as_shown_fails(block: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        walked(block, tmp_path)


@pytest.mark.parametrize("text", ["", "a\nb\n", "old\nold\n"])
def test_a_change_of_what_is_not_there_once_fails(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(AssertionError):
        change(tmp_path / "file", "-old\n+new\n")
