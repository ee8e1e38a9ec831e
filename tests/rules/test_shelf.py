"""A registry reads the heads that may name what is asked for; that gives what reading all of them gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine.errors import WeightloomError
from weightloom.rules import Registry, registry
from weightloom.rules.plain import plain
from weightloom.rules.shelf import Shelf
from weightloom.rules.sources import shipped_sources

HEADS = {
    "plain": "family: a_b\napplies_to: {model_types: [a_b, c]}",
    "escaped": 'family: esc\napplies_to: {model_types: ["\\x64e"]}',
    "quoted": "family: quo\napplies_to: {model_types: ['it''s']}",
    "listed": "family: lis\napplies_to:\n  class_names:\n    - AbC",
    "foreign": "family: straße\napplies_to: {model_types: ['ΑΣ']}",
    "wrong": "family: [d, e]\napplies_to: {model_types: [wrong]}",
    "broken": "family: 'x\napplies_to: {model_types: [broken]}",
}
LAYOUTS = "layouts: {hf: {rules: [{drop: ['in_the_rules']}]}}\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("rules")
    for name, head in HEADS.items():
        (folder / f"{name}.yaml").write_text(f"schema: 1\n{head}\n{LAYOUTS}", encoding="utf-8")
    return [*sorted(folder.iterdir()), folder / "not_there.yaml"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a_b", "a_b"), ("A-B", "a_b"), ("c", "c"), ("de", "de"), ("D_E", "de"), ("it's", "it's"), ("abc", "AbC"),
        ("ΑΣ", "ΑΣ"), ("wrong", None), ("broken", None), ("in_the_rules", None), ("", None), ("a", None),
    ],
)  # fmt: skip
def test_a_name_is_found_however_it_is_written(files: list[Path], name: str, found: str | None) -> None:
    looked = Registry(files)
    assert looked.find(name) == found
    assert (name in looked) == (found == name)
    assert bool(looked(name)) == (found == name)


def test_what_cannot_be_read_is_reported_when_all_are_asked_for(files: list[Path]) -> None:
    looked = Registry(files)
    assert looked.identifiers() == ("AbC", "a_b", "c", "de", "it's", "ΑΣ")
    assert [Path(problem.file or "").stem for problem in looked.problems] == ["broken", "wrong", "not_there"]


def test_two_near_names_are_no_answer(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"schema: 1\nfamily: x\napplies_to: {{model_types: [a_b, ab, c]}}\n{LAYOUTS}", encoding="utf-8")
    assert Registry([file]).find("A-b") is None
    assert Registry([file]).find("ab") == "ab"


def test_a_name_that_two_files_claim_is_an_error(tmp_path: Path) -> None:
    for name in ("one", "two"):
        head = f"schema: 1\nfamily: {name}\napplies_to: {{model_types: [same]}}\n"
        (tmp_path / f"{name}.yaml").write_text(head + LAYOUTS, encoding="utf-8")
    looked = Registry(sorted(tmp_path.iterdir()))
    with pytest.raises(WeightloomError, match="'same' is claimed by"):
        looked("same")


def test_each_shipped_name_is_found_on_a_shelf_as_among_all() -> None:
    shelf = Shelf(shipped_sources())
    every = shelf.all()
    for identifier in registry.identifiers():
        owners = [offer.source for offer in every if identifier in offer.head.identifiers]
        assert [offer.source for offer in shelf.naming(identifier) if identifier in offer.head.identifiers] == owners


def test_a_known_name_reads_few_heads() -> None:
    shelf = Shelf(shipped_sources())
    assert 1 <= len(list(shelf.naming("bert"))) < len(shipped_sources()) / 4


@given(st.text(max_size=8), st.text(max_size=8))
def test_plain_names_in_a_text_stay_together(before: str, name: str) -> None:
    """What lets a head's text be searched: taking signs out of a text takes them out of each name in it."""
    if (before + name).isascii():
        assert plain(before + name) == plain(before) + plain(name)
