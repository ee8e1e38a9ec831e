"""The page of a plan, in a browser: what it shows, what answers, and that it asks nobody for anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.seeing import Page
from tests.cases.fixtures import t0
from tests.runtime.support import checkpoint

pytestmark = pytest.mark.browser
Drawn = Callable[[Path], Path]


@pytest.fixture
def large(page: Page, drawn: Drawn, deepseek: Path) -> Page:
    return page.open(drawn(deepseek).as_uri())


def test_91_991_names_are_a_few_dozen_rows_in_a_small_file(large: Page, drawn: Drawn, deepseek: Path) -> None:
    head = large.text("#head")
    assert "91,991 tensors" in head and "1,571 parameters" in head and "would load" in head
    assert 50 < len(large.all(".row")) < 120
    assert drawn(deepseek).stat().st_size < 150_000
    assert large.run("return [...document.querySelectorAll('.band')].every((e) => e.querySelector('path'))")
    assert large.asked() <= {"file://", "data:"} | {"data://"}


def test_pointing_shows_the_rule_its_place_its_ops_and_the_shapes(large: Page) -> None:
    said = large.point_at(large.row("experts.gate_up_proj"))
    for text in (
        "MergeModulelist",
        "Concatenate",
        "qwen2_moe.yaml:",
        "256 × F8_E4M3 [2048, 7168]",
        "U32 [256, 4096, 1792]",
    ):
        assert text in said
    assert "58 groups, 436 GB" in said and "All experts in one tensor" in said
    lit = large.one(".band.lit")
    assert len(lit.find_elements(By.CSS_SELECTOR, ".row")) == 6


def test_a_row_opens_to_its_names_of_which_a_few_are_there(large: Page) -> None:
    row = large.row("experts.0–255.down_proj.weight")
    large.run("arguments[0].scrollIntoView({block: 'center'})", row)
    row.click()
    names = large.one(".names")
    first = names.find_elements(By.CSS_SELECTOR, ".line")
    assert first[0].text == "model.layers.3.mlp.experts.0.down_proj.weight" and len(first) < 100
    large.run("arguments[0].scrollTop = arguments[0].scrollHeight", names)
    wanted = "model.layers.60.mlp.experts.255.down_proj.weight"
    large.wait(
        lambda: wanted in large.run("return [...arguments[0].querySelectorAll('.line')].map(e => e.innerText)", names)
    )
    row.click()
    assert not large.all(".names")


@pytest.mark.parametrize(
    ("words", "left", "right"),
    [
        ("model.layers.17.mlp.experts.4.up_proj.weight_scale_inv", 4, 2),
        ("layers.61.mlp.experts.255.", 6, 0),
        ("layers.62.", 0, 0),
        ("KV_A_LAYERNORM", 2, 1),
        ("MergeModulelist", 6, 4),
        ("qwen2_moe.yaml:17", 34, 0),
        ("no such name", 0, 0),
    ],
)
def test_search_finds_single_names_ops_and_places_of_rules(large: Page, words: str, left: int, right: int) -> None:
    large.search(words)
    assert (len(large.all(".side.left .row")), len(large.all(".side.right .row"))) == (left, right)
    assert bool(large.all(".none")) == (left + right == 0)


def test_the_legend_filters(large: Page) -> None:
    chips = {chip.get_attribute("data-kind"): chip for chip in large.all(".chip")}
    assert list(chips) == ["same", "recoded", "chained", "dropped"]
    chips["chained"].click()
    assert set(large.kinds()) == {"chained"} and "2 of 23 threads" in large.text("#shown")
    chips["dropped"].click()
    assert set(large.kinds()) == {"chained", "dropped"}
    chips["chained"].click()
    chips["dropped"].click()
    assert set(large.kinds()) == set(chips)


def test_keys_go_through_it(large: Page) -> None:
    large.one("body").send_keys("/")
    assert large.browser.switch_to.active_element.get_attribute("id") == "search"
    first = large.all(".row")[0]
    large.run("arguments[0].focus()", first)
    first.send_keys(Keys.ARROW_DOWN)
    second = large.browser.switch_to.active_element
    assert second.get_attribute("data-row") == "1" and "recoded" in large.text("#inspector")
    second.send_keys(Keys.ARROW_RIGHT)
    assert large.browser.switch_to.active_element.get_attribute("data-side") == "right"
    large.browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert large.all(".names")


@pytest.mark.parametrize("width", [1400, 900, 600])
def test_it_fits_into_the_window(large: Page, width: int) -> None:
    large.browser.set_window_size(width, 700)
    try:
        assert not large.is_too_wide()
    finally:
        large.browser.set_window_size(1400, 900)


def test_a_trained_model(page: Page, drawn: Drawn, trained: Path) -> None:
    page.open(drawn(trained).as_uri())
    assert "would load" in page.text("#verdict") and "BF16" not in page.text("#loom")
    assert "layer.0–5.attention.self.query.weight" in page.text("#loom")
    page.point_at(page.row("query.weight"))
    assert "[384, 384]" in page.text("#inspector")
    assert page.asked() <= {"file://", "data://"}


def test_names_of_others_are_text(page: Page, drawn: Drawn, tmp_path: Path) -> None:
    evil = [
        "<img src=x onerror=document.title='pwned'>",
        "</script><script>document.title='pwned'</script>",
        "a\u202eb\nc",
    ]
    path = checkpoint(tmp_path, {**t0(), **{name: np.zeros(2, np.float32) for name in evil}})
    page.open(drawn(path).as_uri())
    assert "✗ would not load" in page.text("#verdict")
    shown = page.text("#problems")
    assert evil[0] in shown and evil[1] in shown and "a\\u202eb\\u000ac" in shown
    for row in page.all(".band.kind-unexpected .row"):
        row.click()
        page.point_at(row)
    assert page.run("return document.images.length") == 0 and "pwned" not in page.browser.title


def test_what_does_not_fit_is_at_the_top_and_leads_to_its_row(page: Page, drawn: Drawn, tmp_path: Path) -> None:
    arrays = t0()
    arrays["model.norm.w"] = arrays.pop("model.norm.weight")
    page.open(drawn(checkpoint(tmp_path, arrays)).as_uri())
    cards = {card.get_attribute("data-problem"): card.text for card in page.all(".card")}
    assert "model.norm.weight" in cards["missing"] and "model.norm.w" in cards["unexpected"]
    page.one(".card[data-problem=missing] .link").click()
    assert "model.norm.weight" in page.browser.switch_to.active_element.text
    assert page.kinds()[:2] == ["unexpected", "missing"]
