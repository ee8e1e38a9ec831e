"""The studio in a browser: wrong rules show their lines, right ones change the threads, nothing leaves the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.seeing import Page
from tests.cases.fixtures import t0
from tests.runtime.support import checkpoint

pytestmark = pytest.mark.browser
Studio = Callable[..., str]
RENAME = "      - rename: {from: '^net\\.', to: 'model.'}\n"


def text_of(page: Page) -> str:
    return str(page.run("return document.getElementById('text').value"))


def put(page: Page, old: str, new: str) -> None:
    """Select a text in the editor and type another in its place."""
    at = text_of(page).index(old)
    page.run(
        "const f = document.getElementById('text'); f.focus(); f.setSelectionRange(...arguments)", at, at + len(old)
    )
    page.one("#text").send_keys(new)


def is_planned(page: Page) -> bool:
    return str(page.run("return document.getElementById('status').textContent")).startswith("planned in")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    return checkpoint(tmp_path / "model", {name.replace("model.", "net.", 1): array for name, array in t0().items()})


def test_a_wrong_rule_shows_its_line_and_a_right_one_changes_the_threads(
    page: Page, studio: Studio, model: Path
) -> None:
    url = studio(model)
    page.open(url)
    assert "20 unexpected" in page.text("#problems")
    put(page, "rules: []", f"rules:\n{RENAME.rstrip()}".replace("rename", "renam"))
    page.wait(lambda: page.all("#faults .fault"))
    line = text_of(page).split("\n").index(RENAME.rstrip().replace("rename", "renam")) + 1
    assert "did you mean 'rename'" in page.text("#faults li:first-child")
    assert page.one("#marks .fault").get_attribute("data-line") == str(line)
    assert page.one("#gutter .fault").text == str(line)
    assert "stale" in (page.one("#picture").get_attribute("class") or "")
    put(page, "renam:", "rename:")
    page.wait(lambda: is_planned(page))
    assert "✓ would load" in page.text("#verdict") and set(page.kinds()) == {"renamed", "same"}
    assert not page.all("#marks .fault") and not page.all("#faults li")
    assert len(page.all(".band.ruled")) == page.kinds().count("renamed")
    page.point_at(page.row("net.norm.weight"))
    assert page.one("#marks .here").get_attribute("data-line") == str(line)
    here = url.rpartition("/")[0].rpartition("/")[0]
    assert page.asked() <= {here, "data://"}


def test_saving_asks_for_a_place_and_loses_nothing(page: Page, studio: Studio, model: Path, tmp_path: Path) -> None:
    page.open(studio(model))
    put(page, "rules: []", "rules: [] # mine")
    page.one("#save").click()
    page.one("#path").send_keys(str(tmp_path / "mine.yaml"), Keys.ENTER)
    page.wait(lambda: page.text("#file") == str(tmp_path / "mine.yaml"))
    assert (tmp_path / "mine.yaml").read_text() == text_of(page)
    (tmp_path / "mine.yaml").write_text("# theirs\n")
    put(page, "# mine", "# mine too")
    page.one("#text").send_keys(Keys.CONTROL, "s")
    page.wait(lambda: page.all("#notice"))
    assert "changed on disk" in page.text("#notice") and (tmp_path / "mine.yaml").read_text() == "# theirs\n"
    page.one("#notice button").click()
    page.wait(lambda: text_of(page) == "# theirs\n")
    assert page.all("#faults .fault")


def test_rules_that_do_not_fit_are_marked_too(page: Page, studio: Studio, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    head = "schema: 1\nfamily: mine\napplies_to: {model_types: [mine]}\nlayouts:\n  hf:\n    rules:\n"
    convert = "      - convert: {from: '(q|k)_proj\\.weight', to: '\\1_proj.weight', ops: [{Transpose: {}}]}\n"
    file.write_text(head + RENAME + convert)
    page.open(studio(model, "--rules", file))
    assert page.one("#gutter .misfit").text == str((head + RENAME).count("\n") + 1)
    assert "mismatched" in page.kinds()


def test_a_trained_model(page: Page, studio: Studio, trained: Path) -> None:
    url = studio(trained)
    page.open(url)
    assert "✓ would load" in page.text("#verdict")
    put(page, "rules: []", "rules: [{rename: {from: 'query', to: 'question'}}]")
    page.wait(lambda: is_planned(page))
    put(page, "question'}}]", "question'")
    page.wait(lambda: page.all("#faults .fault") and page.all("#marks .fault"))
    assert page.asked() <= {url.rpartition("/")[0].rpartition("/")[0], "data://"}


def test_91_991_names_are_planned_as_one_types(page: Page, studio: Studio, deepseek: Path) -> None:
    url = studio(deepseek)
    page.open(url)
    before = len(page.all(".band"))
    assert "91,991 tensors" in page.text("#head") and "✓ would load" in page.text("#verdict")
    put(page, "rules: []", "rules: [{rename: {from: 'enorm', to: 'e_norm'}}, {drop: 'hnorm'}]")
    page.wait(lambda: is_planned(page))
    assert len(page.all(".band")) > before
    shown = page.search("hnorm")
    assert any("hnorm" in name for name in shown)
    assert page.asked() <= {url.rpartition("/")[0].rpartition("/")[0], "data://"}


def test_the_editor_scrolls_with_its_numbers(page: Page, studio: Studio, model: Path) -> None:
    page.open(studio(model))
    page.run("document.getElementById('text').value += '\\n# more'.repeat(200)")
    page.one("#text").send_keys(" ")
    page.run("document.getElementById('text').scrollTop = 1000")
    page.wait(lambda: page.run("return document.getElementById('gutter').scrollTop") == 1000)
    assert len(page.one("#gutter").find_elements(By.TAG_NAME, "div")) == text_of(page).count("\n") + 1
    assert not page.is_too_wide()
