"""Every link of a page leads to a file that is there, with the heading that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.guards import ROOT

PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def dead_links(page: Path) -> list[str]:
    """List the links of a page that lead nowhere."""
    links = _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8")))
    return [name or heading for name, heading in links if not _leads(page.parent / name if name else page, heading)]


def _leads(target: Path, heading: str) -> bool:
    return target.is_file() and (not heading or heading in _headings(target))


def _headings(page: Path) -> list[str]:
    """Name headings as code hosts and Sphinx do: small letters, marks left out, hyphens for spaces."""
    text = page.read_text(encoding="utf-8")
    included = [
        name
        for file in re.findall(r"^```\{include\} (\S+)$", text, re.MULTILINE)
        for name in _headings(page.parent / file)
    ]
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return included + [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


@pytest.mark.parametrize("text", ["[a](gone.md)", "[a](page.md#gone)", "[a](#gone)"])
def test_a_planted_dead_link_is_seen(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# There\n\n[good](page.md#there) and [good](https://example.org)\n\n{text}\n")
    assert len(dead_links(page)) == 1


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = set()
    for page in (ROOT / "docs").rglob("*.md"):
        for body in re.findall(
            r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            listed |= {page.parent / f"{line}.md" for line in body.split() if not line.startswith(":")}
    assert {page for page in PAGES if page.parent != ROOT} - listed == {ROOT / "docs" / "index.md"}
