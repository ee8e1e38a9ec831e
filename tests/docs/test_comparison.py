"""The comparison: each cell says how it is kept true, and what it says of us is so; tests/oracle tries the others."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from docs.generating import PARTS, comparison
from tests.guards import ROOT
from weightloom.plugins import PluginManager
from weightloom.runtime.cli import COMMANDS

ROWS = {row["about"]: row for row in comparison.read()["rows"]}
CELLS = [(about, peer) for about in ROWS for peer in comparison.PEERS]


def cells(peer: str) -> Iterator[str]:
    yield from (row[peer]["says"] for row in ROWS.values())


@pytest.mark.parametrize(("about", "peer"), CELLS)
def test_every_cell_is_held_by_a_test_that_is_there_or_was_seen_at_a_time(about: str, peer: str) -> None:
    found = ROWS[about][peer]
    assert set(found) in ({"says", "held"}, {"says", "seen"})
    if "held" in found:
        file, _, test = found["held"].partition("::")
        assert (ROOT / file).is_file(), file
        assert not test or f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8"), test
    else:
        assert re.search(r", 20\d\d-\d\d$", found["seen"]) or found["says"] in ("not measured", "1")


def test_every_cell_is_on_the_page() -> None:
    page = PARTS["comparison"]()
    assert [said for peer in comparison.PEERS for said in cells(peer) if said not in page] == []


def test_our_model_types() -> None:
    assert ROWS["model types"]["weightloom"]["says"].startswith(f"{len(PluginManager().model_types())}:")


def test_what_we_do_not_do() -> None:
    names = {command.name for command in COMMANDS}
    assert not names & {"train", "lora", "serve", "server"}


def test_our_formats() -> None:
    page = (ROOT / "docs" / "reference" / "quantization-formats.md").read_text(encoding="utf-8")
    said = ROWS["quantized forms that are read"]["weightloom"]["says"].split(", ")
    assert [name for name in said if name != "MLX's" and name not in page] == []


@pytest.mark.parametrize(
    ("about", "file", "row", "columns"),
    [
        ("planning the 91,991 names of DeepSeek-V3", "benchmarks/README.md", "DeepSeek-V3, FP8", (3, 2, None)),
        ("peak of host memory over the parameters, a Qwen3-MoE of 1.6 GB", "benchmarks/README.md", None, (5, 5, 5)),
        ("loading a Qwen3-MoE of 21.2 GB onto an H200", "docs/explanation/loading.md", None, (1, 1, 1)),
    ],
)
def test_figures_are_those_of_the_benchmarks(
    about: str, file: str, row: str | None, columns: tuple[int | None, ...]
) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    own = {
        "weightloom": ("weightloom", "`weightloom.runtime.load`"),
        "transformers": ("Transformers",),
        "mlx-lm": ("mlx-lm",),
    }
    for (peer, starts), column in zip(own.items(), columns, strict=True):
        if column is not None:
            figure = re.search(r"^[\d,.]+", ROWS[about][peer]["says"])
            assert figure and figure[0] in _cells(text, (row,) if row else starts, column), (peer, figure)


def _cells(text: str, starts: tuple[str, ...], column: int) -> list[str]:
    """Give what stands in a column of the rows that begin so, the first cell being number 0."""
    rows = [
        [part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    fitting = [row for row in rows if row[0].startswith(starts) and len(row) > column]
    return [row[column].split(";")[0].split(" ")[0] for row in fitting]


@pytest.mark.parametrize(
    ("about", "columns"),
    [("prompts on an H200 over mlx-lm", (0,)), ("tokens made one by one on an H200 over mlx-lm", (1, 2))],
)
def test_the_figures_of_generating_are_those_of_the_benchmarks(about: str, columns: tuple[int, ...]) -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8").partition("## Figures of generating")[2]
    rows = [
        re.findall(r"\((\d\.\d\d)x\)", line) for line in text.splitlines() if re.match(r"\| *\|? *weightloom \|", line)
    ]
    measured = {row[column] for row in rows if row for column in columns}
    said = set(re.findall(r"\d\.\d\d", ROWS[about]["weightloom"]["says"]))
    assert {min(measured), max(measured)} <= said <= measured
