"""Which rules a checkpoint is read by, at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases.fixtures import t0, write
from tests.runtime.support import T0_CONFIG, Cli, checkpoint

NEW_RULES = """schema: 1
family: my_llama
applies_to: {model_types: [my_llama]}
layouts:
  hf:
    rules:
      - rename: {from: '^model\\.', to: 'net.'}
      - drop: ['^lm_head\\.weight']
        why: 'made anew'
"""


def written(folder: Path, **changes: Any) -> Path:
    config = {**T0_CONFIG, **changes}
    return checkpoint(folder / "t0", config={key: value for key, value in config.items() if value != "absent"})


def test_the_model_type_decides_where_the_class_has_no_rules(cli: Cli, tmp_path: Path) -> None:
    choice = cli("plan", written(tmp_path), "--json").data["choice"]
    assert (choice["identifier"], choice["layout"]) == ("llama", "hf")
    assert choice["decided_by"] == f"model_type 'llama' in {tmp_path}/t0/config.json"
    assert [Path(file).name for file in choice["rule_files"]] == ["llama.yaml", "legacy.yaml"]


def test_the_class_is_asked_first(cli: Cli, tmp_path: Path) -> None:
    path = written(tmp_path, architectures=["LlavaModel"], model_type="llava")
    found = cli("inspect", path, "--json").data
    assert found["identifier"] == "LlavaModel"
    assert found["decided_by"].startswith("architectures[0] 'LlavaModel' in ")


@pytest.mark.case("C22")
@pytest.mark.parametrize("spelling", ["Qwen2_MoE", "qwen2-moe", "qwen2_moe"])
def test_c22_spellings_of_one_model_type(cli: Cli, tmp_path: Path, spelling: str) -> None:
    """C22: the exact name first, one that differs in case and separators only where it is unique."""
    path = written(tmp_path, model_type=spelling, architectures=None)
    assert cli("inspect", path, "--json").data["identifier"] == "qwen2_moe"


@pytest.mark.case("C22")
def test_c22_a_misspelt_one_is_refused_with_the_nearest(cli: Cli, tmp_path: Path) -> None:
    ran = cli("plan", written(tmp_path, model_type="lama", architectures=None))
    assert ran.code == 1 and "no rules for model_type 'lama'" in ran.err and "llama" in ran.err
    looked = cli("inspect", tmp_path / "t0")
    assert looked.code == 0 and "no rules for model_type 'lama'" in looked.out and "llama" in looked.out


def test_nothing_says_what_it_is(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path / "alone.safetensors", t0())
    ran = cli("plan", path)
    assert ran.code == 1
    assert "no config.json" in ran.err and "--model-type NAME" in ran.err and "--rules FILE" in ran.err
    assert cli("inspect", path).code == 0
    assert cli("plan", path, "--model-type", "llama").code == 0
    ran = cli("plan", path, "--model-type", "lllama")
    assert ran.code == 1 and "--model-type 'lllama'" in ran.err and "llama" in ran.err


def test_a_rule_file_is_enough(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path / "alone.safetensors", t0())
    rules = tmp_path / "my_llama.yaml"
    rules.write_text(NEW_RULES)
    plan = cli("plan", path, "--rules", rules, "--json").data
    assert plan["ok"] and plan["choice"]["identifier"] is None
    assert "net.norm.weight" in plan["params"]
    assert [kept["name"] for kept in plan["kept"]] == ["lm_head.weight"]
    ran = cli("explain", path, "lm_head.weight", "--rules", rules)
    assert f"({rules}:8)" in ran.out and "dropped" in ran.out


def test_the_users_rules_come_before_those_that_ship(cli: Cli, tmp_path: Path) -> None:
    from tests.cases.fixtures import tm

    path = checkpoint(tmp_path / "moe", tm(2), {"model_type": "qwen2_moe"})
    rules = tmp_path / "mine.yaml"
    rules.write_text(
        "schema: 1\nfamily: mine\nlayouts:\n  hf:\n    rules:\n"
        "      - convert: {from: '\\.experts\\.*.down_proj\\.weight', to: '\\.experts\\.mine', "
        "ops: [{MergeModulelist: {dim: 0}}]}\n"
    )
    usual = cli("plan", path, "--json").data
    mine = cli("plan", path, "--rules", rules, "--json").data
    assert usual["ok"] and mine["ok"]
    assert "model.layers.0.mlp.experts.down_proj" in usual["params"]
    assert "model.layers.0.mlp.experts.mine" in mine["params"]
    assert "model.layers.0.mlp.experts.gate_up_proj" in mine["params"]


def test_a_layout_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    ran = cli("plan", written(tmp_path), "--layout", "nosuch")
    assert ran.code == 2 and "llama has no layout 'nosuch'" in ran.err and "hf" in ran.err


def test_a_wrong_rule_file_is_named_with_its_line(cli: Cli, tmp_path: Path) -> None:
    rules = tmp_path / "bad.yaml"
    rules.write_text(NEW_RULES.replace("rename", "renam"))
    ran = cli("plan", written(tmp_path), "--rules", rules)
    assert ran.code == 1 and f"{rules}:7:" in ran.err
    assert cli("plan", written(tmp_path), "--rules", tmp_path / "none.yaml").code == 3


def test_a_layout_that_only_the_users_file_has(cli: Cli, tmp_path: Path) -> None:
    rules = tmp_path / "mine.yaml"
    rules.write_text(NEW_RULES.replace("  hf:", "  vendor:"))
    path = written(tmp_path)
    ran = cli("plan", path, "--rules", rules, "--layout", "vendor", "--open-target", "--json")
    assert ran.code == 0 and "net.norm.weight" in ran.data["params"]
    assert cli("plan", path, "--rules", rules, "--layout", "nosuch").code == 2
    assert cli("plan", path, "--rules", rules).code == 2
    assert cli("plan", path, "--rules", tmp_path / "mine.yaml", "--layout", "vendor", "--model-type", "llama").code == 0
