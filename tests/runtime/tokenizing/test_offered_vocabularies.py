"""Vocabularies of other packages: found by their mark where nothing else is there, refused by name where they fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.installed import install_points
from weightloom.engine.errors import ConfigError, PluginError
from weightloom.plugins.discovery.vocabularies import GROUP
from weightloom.runtime.tokenizing.tokenizer import load_tokenizer

READER = """
import tokenizers
from tokenizers import models, pre_tokenizers

def read(path):
    words = path.read_text().split()
    made = tokenizers.Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token=words[0]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made

def other(path):
    return 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site, folder = tmp_path / "site", tmp_path / "model"
    folder.mkdir()
    install_points(site, "words", {GROUP: {"words.list": "words_reader:read", ".odd": "words_reader:other"}})
    (site / "words_reader.py").write_text(READER)
    monkeypatch.syspath_prepend(str(site))
    return folder


def test_it_is_read_and_what_lies_beside_it_holds(folder: Path) -> None:
    (folder / "words.list").write_text("? one two <end>")
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>", "chat_template": "x"}))
    found = load_tokenizer(folder)
    assert found is not None
    assert found.encode("two one three") == [2, 1, 0]
    assert found.stop_ids == frozenset({3}) and found.template is not None


def test_a_known_form_comes_first(folder: Path) -> None:
    (folder / "words.list").write_text("? one")
    (folder / "tokenizer.json").write_text("no tokenizer")
    with pytest.raises(ConfigError, match=r"tokenizer\.json"):
        load_tokenizer(folder)


def test_what_it_raises_names_the_package(folder: Path) -> None:
    (folder / "words.list").write_text("")
    with pytest.raises(PluginError, match="words_reader:read of words cannot open"):
        load_tokenizer(folder)


def test_what_is_no_tokenizer_is_refused(folder: Path) -> None:
    (folder / "a.odd").write_text("")
    with pytest.raises(ConfigError, match="gives int"):
        load_tokenizer(folder)


def test_two_files_that_could_be_meant_are_named(folder: Path) -> None:
    for name in ("a.odd", "b.odd"):
        (folder / name).write_text("")
    with pytest.raises(ConfigError, match=r"a\.odd.*b\.odd"):
        load_tokenizer(folder)
