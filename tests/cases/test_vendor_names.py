"""Cases C49 and C50: what a config says of modules by name, by pattern or by class, and parts that are joined."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.plugins.formats.codes import Labelled, labelled, write
from weightloom.engine import Concatenate, RuleSet, WeightConverter, WeightRenaming
from weightloom.engine.errors import ConfigError
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.runtime.opening.opening import Opened, open_path
from weightloom.runtime.preparing.planner import planner_of
from weightloom.runtime.saving.named_settings import modules_made, with_names

FC1 = "model.vision.layers.0.mlp.fc1"
IGNORE = ["lm_head", "re:vision_tower.*", FC1]
RULES = RuleSet([WeightRenaming(r"^vision_tower\.", "model.vision_tower."), WeightRenaming(r"\.mlp\.fc1\.", ".fc1.")])


def codes(name: str, end: str = "weight_scale") -> dict[str, Labelled]:
    return {
        f"{name}.weight": Labelled("F8_E4M3", np.full((32, 32), 0x38, np.uint8)),
        f"{name}.{end}": labelled(np.full((32, 1), 2.0, np.float32)),
    }


def dense(name: str) -> dict[str, Labelled]:
    return {f"{name}.weight": labelled(np.ones((32, 32), np.float32))}


def opened(folder: Path, tensors: Mapping[str, Labelled], section: Mapping[str, Any]) -> Opened:
    write(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({"model_type": "x", "quantization_config": section}))
    return open_path(folder)


def compressed(ignore: list[str]) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}
    return {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"group_0": group},
        "ignore": ignore,
    }


def hows(source: Opened, rules: RuleSet) -> dict[str, Quantization]:
    with source:
        planner = planner_of(source, "hf")
        return planner.quantized(planner.plan(rules))


@pytest.mark.case("C49")
def test_paths_patterns_and_classes_of_a_list(tmp_path: Path) -> None:
    tensors = {**codes("model.layers.0.q_proj"), **dense(FC1), **dense("vision_tower.a"), **dense("lm_head")}
    source = opened(tmp_path, tensors, compressed(IGNORE))
    raw = (tmp_path / "config.json").read_bytes()
    with source:
        planner = planner_of(source, "hf")
        plan = planner.plan(RULES)
        assert list(planner.quantized(plan)) == ["model.layers.0.q_proj"]
        renamed = json.loads(with_names(raw, modules_made(plan)))["quantization_config"]
    assert renamed["ignore"] == ["lm_head", "re:vision_tower.*", "model.vision.layers.0.fc1"]
    assert renamed["config_groups"]["group_0"]["targets"] == ["Linear"]


@pytest.mark.case("C49")
@pytest.mark.parametrize("name", ["vision_tower.a", FC1, "lm_head"])
def test_a_list_means_the_names_of_the_file(tmp_path: Path, name: str) -> None:
    source = opened(tmp_path, {**codes("model.layers.0.q_proj"), **codes(name)}, compressed(IGNORE))
    with source, pytest.raises(ConfigError, match=rf"{name}\.weight is stored as codes, and ignore lists"):
        planner_of(source, "hf")


@pytest.mark.case("C49")
def test_a_name_that_only_begins_like_one_of_the_list_is_another(tmp_path: Path) -> None:
    source = opened(tmp_path, codes("lm_head_2"), compressed(IGNORE))
    assert list(hows(source, RuleSet())) == ["lm_head_2"]


MODELOPT = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"a.o_proj": "FP8"}}
QKV = WeightConverter([rf"{part}_proj\.weight" for part in "qkv"], "qkv_proj.weight", [Concatenate(0)])


@pytest.mark.case("C50")
def test_what_a_sparse_list_leaves_out_is_dense(tmp_path: Path) -> None:
    source = opened(tmp_path, {**codes("a.o_proj"), **dense("a.q_proj")}, MODELOPT)
    assert list(hows(source, RuleSet())) == ["a.o_proj"]


@pytest.mark.case("C50")
def test_codes_that_a_sparse_list_leaves_out_are_an_error(tmp_path: Path) -> None:
    source = opened(tmp_path, {**codes("a.o_proj"), **codes("a.q_proj")}, MODELOPT)
    with source, pytest.raises(ConfigError, match=r"a\.q_proj is stored as codes, and quantized_layers does not list"):
        planner_of(source, "hf")


@pytest.mark.case("C50")
def test_what_is_joined_is_packed_if_all_parts_are(tmp_path: Path) -> None:
    parts = [f"a.{part}_proj" for part in "qkv"]
    tensors = {name: each for part in parts for name, each in codes(part).items()}
    found = hows(opened(tmp_path / "packed", tensors, compressed([])), RuleSet([QKV]))
    assert {path: how.mode for path, how in found.items()} == {"a.qkv_proj": "mxfp8"}
    tensors = {name: each for part in parts for name, each in dense(part).items()}
    assert not hows(opened(tmp_path / "plain", {**tensors, **codes("b")}, compressed(parts)), RuleSet([QKV])).keys() - {
        "b"
    }


@pytest.mark.case("C50")
def test_parts_that_are_packed_and_not_are_named(tmp_path: Path) -> None:
    tensors = {**dense("a.q_proj"), **codes("a.k_proj"), **codes("a.v_proj")}
    source = opened(tmp_path, tensors, compressed(["a.q_proj"]))
    with pytest.raises(ConfigError, match=r"a\.qkv_proj\.weight is made of a\.q_proj\.weight \(not packed\) and a\.k"):
        hows(source, RuleSet([QKV]))
