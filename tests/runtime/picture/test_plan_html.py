"""`plan --html`: a page beside the answer, never over a file that is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases.fixtures import t0
from tests.runtime.support import Cli, checkpoint


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    return checkpoint(tmp_path / "model")


def drawn(file: Path) -> dict[str, object]:
    text = file.read_text()
    start = text.index(">", text.index('id="data"')) + 1
    found: dict[str, object] = json.loads(text[start : text.index("</script>", start)])
    return found


def test_the_page_is_of_the_plan(cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("plan", model, "--html", tmp_path / "out.html")
    assert ran.code == 0 and "written as a page" in ran.out
    found = drawn(tmp_path / "out.html")
    assert found["loads"] is True and found["title"] == str(model)
    assert {path.name for path in tmp_path.iterdir()} == {"model", "out.html"}


def test_json_names_the_page(cli: Cli, model: Path, tmp_path: Path) -> None:
    assert cli("plan", model, "--json").data["html"] is None
    ran = cli("plan", model, "--html", tmp_path / "out.html", "--json")
    assert ran.data["html"] == str(tmp_path / "out.html") and ran.data["ok"] is True


def test_what_would_not_load_is_drawn_too(cli: Cli, model: Path, tmp_path: Path) -> None:
    arrays = t0()
    del arrays["model.norm.weight"]
    checkpoint(model, arrays)
    ran = cli("plan", model, "--html", tmp_path / "out.html")
    assert ran.code == 1
    assert drawn(tmp_path / "out.html")["loads"] is False


def test_a_file_that_is_there_is_replaced_when_that_is_asked_for(cli: Cli, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    out.write_text("mine")
    ran = cli("plan", model, "--html", out)
    assert ran.code == 2 and "--overwrite" in ran.err and out.read_text() == "mine"
    assert cli("plan", model, "--html", out, "--overwrite").code == 0
    assert drawn(out)["loads"] is True


def test_no_weights_are_written_over(cli: Cli, model: Path) -> None:
    weights = model / "model.safetensors"
    before = weights.read_bytes()
    ran = cli("plan", model, "--html", weights, "--overwrite")
    assert ran.code == 2 and "ends in .html" in ran.err
    assert weights.read_bytes() == before


def test_a_page_is_no_directory(cli: Cli, model: Path, tmp_path: Path) -> None:
    assert cli("plan", model, "--html", tmp_path, "--overwrite").code == 2
    assert cli("plan", model, "--html", tmp_path / "no" / "where.html").code == 3
