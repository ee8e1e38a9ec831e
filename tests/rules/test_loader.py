import json
import subprocess
import sys
from pathlib import Path

import pytest

from weightloom.engine.errors import RuleError, StorageError, UsageError
from weightloom.engine.mapping.claims import Drop, Tie
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.rules import load_rules
from weightloom.rules.loader import is_path


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_by_model_type_and_alias(name: str) -> None:
    tie = Tie(
        r"^lm_head\.(weight|scales|biases)",
        r"model.embed_tokens.\1",
        when="tie_word_embeddings",
        why="One matrix embeds tokens and scores them.",
    )
    why = "Rotary frequencies follow from the config; old files carry them for every layer."
    assert load_rules(name) == RuleSet([Drop(r"\.rotary_emb\.inv_freq", why=why), tie], "model")


def test_by_class_and_family() -> None:
    assert load_rules("Gemma3Model") == load_rules("LlavaModel") == load_rules("llava_model")


def test_by_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("schema: 1\nfamily: mine\nextends: llama\nlayouts: {hf: {rules: [{drop: x}]}}\n")
    assert load_rules(file) == load_rules(str(file)) == RuleSet([*load_rules("llama"), Drop("x")], "model")
    with pytest.raises(UsageError, match="mine has no layout 'other'"):
        load_rules(file, layout="other")


def test_a_path_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        load_rules(tmp_path / "none.yaml")
    with pytest.raises(StorageError, match="cannot read the rule file"):
        load_rules(tmp_path)
    with pytest.raises(StorageError, match="null"):
        load_rules("a\0b.yaml")
    bad = tmp_path / "bad.yaml"
    bad.write_text("schema: 1\nfamily: bad\nlayouts: {hf: {rules: [{drop: 1}]}}\n")
    with pytest.raises(RuleError) as caught:
        load_rules(bad)
    assert caught.value.file == f"{bad}:3:31"
    assert str(caught.value) == f"{bad}:3:31: drop is 1\n  expected: text\n  to do: put it in single quotes"


def test_an_unknown_name() -> None:
    with pytest.raises(UsageError, match="no rules for 'lama'") as caught:
        load_rules("lama")
    assert caught.value.hint == "did you mean 'llama'?"


@pytest.mark.parametrize(
    ("name", "path"),
    [("llama", False), ("my.model", False), ("x.yaml", True), ("./x", True), (Path("x"), True), ("a/b", True)],
)
def test_what_is_a_path(name: str | Path, path: bool) -> None:
    assert is_path(name) is path


def test_an_import_reads_nothing_and_a_load_parses_one_family() -> None:
    probe = """
import json, sys
import weightloom.rules
early = sorted(sys.modules)
from weightloom.rules import load_rules, registry
load_rules("mixtral")
parsed = sorted(path.name for path in registry._parsed)
print(json.dumps([early, parsed]))
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    early, parsed = json.loads(done.stdout)
    assert not {"yaml", "regex", "weightloom.engine.mapping.rule"} & set(early)
    assert parsed == ["llama.yaml", "mixtral.yaml"]
