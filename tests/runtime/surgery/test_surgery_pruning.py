"""Pruning: a model without some heads, channels or layers is one in which they add nothing."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import contents, write
from tests.families.all import FAMILIES
from tests.runtime.models import config_of, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import NotInvertible, PlanError
from weightloom.plugins import PluginManager
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.testing import Sample, write_checkpoint
from weightloom.rules.problems import RuleFileError
from weightloom.runtime import load
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.surgery.surgery_file import read_surgery

TOKENS = [[1, 5, 9, 200, 3]]
HEADS = "{op: prune, granularity: attention_head, pattern: '**.self_attn.**', head_ids: [1, 3]}"
GROUP = "{op: prune, granularity: attention_head, pattern: '**.self_attn.**', head_ids: [0, 1]}"
CHANNELS = "{op: prune, granularity: mlp_channel, pattern: '**.mlp.**', channel_ids: [0, 5, 7]}"
LAYER = "{op: prune, granularity: layer, pattern: 'model.layers.**', layer_ids: [0]}"
SIZES = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3, "intermediate_size": 24}


def surgery(folder: Path, *operations: str) -> Path:
    path = folder / "surgery.yaml"
    path.write_text("version: 1\noperations:\n" + "".join(f"- {each}\n" for each in operations))
    return path


def model(folder: Path, name: str = "llama") -> Path:
    return write_model(folder, name, config_of(name, **SIZES))


def silenced(folder: Path, target: Path, end: str, columns: list[int], layers: list[int]) -> Path:
    """Write the model with columns of some matrices zeroed."""
    target.mkdir()
    arrays = {name: np.array(array) for name, array in mx.load(str(folder / "model.safetensors")).items()}
    for layer in layers:
        arrays[f"model.layers.{layer}.{end}.weight"][:, columns] = 0
    write(target / "model.safetensors", arrays)
    (target / "config.json").write_bytes((folder / "config.json").read_bytes())
    return target


def logits(folder: Path, file: Path | None = None) -> mx.array:
    return load(folder, surgery=file).model(mx.array(TOKENS))


def test_heads_that_are_pruned_are_heads_that_add_nothing(tmp_path: Path) -> None:
    source = model(tmp_path / "m")
    size = json.loads((source / "config.json").read_text())["hidden_size"] // 4
    for number, (operation, heads) in enumerate([(HEADS, [1, 3]), (GROUP, [0, 1])]):
        columns = [head * size + each for head in heads for each in range(size)]
        wanted = logits(silenced(source, tmp_path / f"z{number}", "self_attn.o_proj", columns, [0, 1, 2]))
        assert mx.allclose(logits(source, surgery(tmp_path, operation)), wanted, atol=1e-5).item()


def test_channels_that_are_pruned_are_channels_that_add_nothing(tmp_path: Path) -> None:
    source = model(tmp_path / "m")
    wanted = logits(silenced(source, tmp_path / "z", "mlp.down_proj", [0, 5, 7], [0, 1, 2]))
    assert mx.allclose(logits(source, surgery(tmp_path, CHANNELS)), wanted, atol=1e-5).item()


def test_layers_that_are_pruned_are_layers_that_add_nothing(tmp_path: Path) -> None:
    source = model(tmp_path / "m")
    half = silenced(source, tmp_path / "half", "mlp.down_proj", list(range(24)), [0])
    hidden = json.loads((source / "config.json").read_text())["hidden_size"]
    wanted = logits(silenced(half, tmp_path / "z", "self_attn.o_proj", list(range(hidden)), [0]))
    assert mx.allclose(logits(source, surgery(tmp_path, LAYER)), wanted, atol=1e-5).item()


@pytest.mark.parametrize("layout", ["original", "mlx"])
@pytest.mark.parametrize("dtype", [None, "F16"])
def test_what_is_written_says_what_it_is(tmp_path: Path, layout: str, dtype: str | None) -> None:
    source, file = model(tmp_path / "m"), surgery(tmp_path, HEADS, CHANNELS, LAYER)
    m = load(source, dtype, surgery=file)
    convert(source, Order(tmp_path / "converted", layout, dtype, surgery=read_surgery(file)), Wish())
    m.save(tmp_path / "saved", layout="hf" if layout == "original" else layout)
    for folder in (tmp_path / "converted", tmp_path / "saved"):
        config = json.loads((folder / "config.json").read_text())
        assert [config[key] for key in SIZES] == [2, 2, 2, 21]
        again = load(folder)
        assert mx.array_equal(again.model(mx.array(TOKENS)), m.model(mx.array(TOKENS))).item()
        assert parameters(again.model).keys() == parameters(m.model).keys()
        assert "weightloom-kept.safetensors" not in contents(folder)


@pytest.mark.parametrize("operation", [HEADS, CHANNELS, LAYER, LAYER.replace("[0]", "[2]")])
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_it_is_never_saved_as_what_it_was(tmp_path: Path, operation: str, dtype: str | None) -> None:
    m = load(model(tmp_path / "m"), dtype, surgery=surgery(tmp_path, operation))
    with pytest.raises(NotInvertible, match="surgery"):
        m.save(tmp_path / "out")


def test_operations_before_act_on_what_stays(tmp_path: Path) -> None:
    source = model(tmp_path / "m")
    scale = "{op: scale, pattern: 'model.layers.1.mlp.up_proj.weight', factor: 2.0}"
    found = parameters(load(source, surgery=surgery(tmp_path, scale, LAYER)).model)
    was = parameters(load(source).model)["model.layers.1.mlp.up_proj.weight"]
    assert mx.array_equal(found["model.layers.0.mlp.up_proj.weight"], was * 2).item()


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (HEADS.replace("[1, 3]", "[1]"), "more queries than others"),
        (HEADS.replace("[1, 3]", "[4]"), "of 4 num_attention_heads"),
        (HEADS.replace("[1, 3]", "[0, 1, 2, 3]"), "of 4 num_attention_heads"),
        (HEADS.replace("**.self_attn.**", "**.layers.0.self_attn.**"), "would stay as they are"),
        (HEADS.replace("**.self_attn.**", "**.self_attn.o_proj.**"), "would stay as they are"),
        (HEADS.replace("**.self_attn.**", "model.**"), "none that can be cut"),
        (CHANNELS.replace("5", "24"), "of 24 intermediate_size"),
        (LAYER.replace("[0]", "[3]"), "of 3 layers"),
        (LAYER.replace("layers.**", "layers.*.mlp.**"), "not matched"),
        (LAYER.replace("model.layers.**", "lm_head.*"), "one stack"),
    ],
)
def test_what_cannot_be_pruned_is_refused(tmp_path: Path, operation: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        load(model(tmp_path / "m"), surgery=surgery(tmp_path, operation))


def test_experts_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="none that can be cut"):
        load(write_model(tmp_path / "m", "mixtral"), surgery=surgery(tmp_path, CHANNELS))


@pytest.mark.parametrize(
    ("operations", "place", "said"),
    [
        ((LAYER, "{op: scale, pattern: '**', factor: 2.0}"), "4:3", "after a prune"),
        ((LAYER.replace("layer_ids: [0]", "layer_ids: [-1]"),), "3:", "layer_ids is a list"),
        ((LAYER.replace("layer_ids: [0]", "layer_ids: []"),), "3:", "layer_ids is a list"),
        ((LAYER.replace("layer_ids", "head_ids"),), "3:", "unknown key 'head_ids'"),
        (("{op: prune, pattern: '**', layer_ids: [0]}",), "3:3", "lacks 'granularity'"),
        ((LAYER.replace("layer,", "neuron,"),), "3:", "granularity is 'neuron'"),
    ],
)
def test_a_file_is_checked(tmp_path: Path, operations: tuple[str, ...], place: str, said: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        read_surgery(surgery(tmp_path, *operations))
    assert f":{place}" in str(caught.value)
    assert said in str(caught.value)


def test_check_says_what_goes(cli: Cli, tmp_path: Path) -> None:
    ran = cli("surgery", "check", surgery(tmp_path, CHANNELS, LAYER), model(tmp_path / "m"))
    assert ran.code == 0
    assert "model.layers.1.mlp.up_proj.weight  F32 [24, " in ran.out
    assert "-> [21, " in ran.out
    assert "model.layers.0.self_attn.q_proj.weight  F32 [" in ran.out
    assert " goes\n" in ran.out


def test_what_is_left_is_a_model_of_its_config_before_anything_is_written(cli: Cli, tmp_path: Path) -> None:
    """One dense layer comes first, says the config; without it an expert layer would."""
    (family,) = (each for each in FAMILIES if each.name == "deepseek_v3")
    config = family.config(family.cases[0])
    write_checkpoint(Sample("tiny", config), PluginManager().architecture("deepseek_v3"), tmp_path / "m")
    file = surgery(tmp_path, LAYER)
    for command in (("surgery", "check", file, tmp_path / "m"), ("convert", tmp_path / "m", tmp_path / "out")):
        ran = cli(*command, *(("--surgery", file) if command[0] == "convert" else ()))
        assert ran.code == 1 and "would not fit deepseek_v3" in ran.err
    assert not (tmp_path / "out").exists()
