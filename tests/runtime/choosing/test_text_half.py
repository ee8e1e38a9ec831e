"""C21, C23: text against vision, and the text model of a checkpoint with towers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import filled, write
from tests.runtime.models import config_of, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import ConfigError, PlanError, PluginError, UsageError
from weightloom.plugins.judging.vision import vision_of
from weightloom.runtime import Fusing, load

TOKENS = mx.array([[1, 2, 3]])
TOWERS = {"vision_tower.x.weight": (4, 4), "audio_tower.y.weight": (3, 4), "multi_modal_projector.linear.bias": (4,)}
PUBLISHED = {"model.": "language_model.model.", "lm_head.": "language_model.lm_head."}
OF_NOW = {"model.": "model.language_model.", "lm_head.": "lm_head."}


def whole(
    folder: Path,
    prefixes: dict[str, str],
    extra: dict[str, tuple[int, ...]],
    family: str = "llama",
    **changes: Any,
) -> Path:
    """Write a text model below a whole's names, with towers, and the whole's config."""
    write_model(folder, family)
    found = {name: np.array(array) for name, array in mx.load(str(folder / "model.safetensors")).items()}
    named = {next((new + name[len(old) :] for old, new in prefixes.items() if name.startswith(old)), name): array
             for name, array in found.items()}  # fmt: skip
    write(folder / "model.safetensors", {**named, **filled(extra, seed=3)})
    text = config_of(family)
    config = {"model_type": "llava", "text_config": text, "vision_config": {"hidden_size": 4}, **changes}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def logits(path: Path, **options: Any) -> mx.array:
    return load(path, **options).model(TOKENS)


@pytest.mark.case("C21")
@pytest.mark.parametrize(
    ("changes", "names", "present", "why"),
    [
        ({}, (), False, "vision_config is absent"),
        ({"vision_config": None}, (), False, "vision_config is null"),
        ({"vision_config": {}}, (), False, "vision_config is empty"),
        ({"vision_config": {"depth": 2}}, ("vision_tower.x.weight",), True, "such as vision_tower.x.weight"),
        ({"vision_config": {"depth": 2}}, ("model.norm.weight",), False, "no tensor of a vision tower"),
        ({"vision_config": {"depth": 2}, "language_model_only": True}, ("visual.x.w",), False, "language_model_only"),
        ({"vision_config": {}}, ("model.visual.blocks.0.w",), False, "empty, though there are tensors such as model."),
    ],
)
def test_c21_text_against_vision(changes: dict[str, Any], names: tuple[str, ...], present: bool, why: str) -> None:
    """C21: the decision and its reason."""
    found = vision_of(changes, names)
    assert found.present is present and why in found.why and why in str(found)
    assert vision_of(changes, names[::-1]) == found


@pytest.mark.case("C21")
def test_c21_inspect_says_which_facts_decided(cli: Cli, tmp_path: Path) -> None:
    """C21."""
    path = whole(tmp_path / "vlm", PUBLISHED, TOWERS)
    said = "a vision tower: vision_config is filled, and there are tensors such as vision_tower.x.weight"
    assert cli("inspect", path, "--json").data["vision"] == said and said in cli("inspect", path).out
    stripped = whole(tmp_path / "stripped", PUBLISHED, {}, vision_config={})
    assert "text only: vision_config is empty" in cli("inspect", stripped).out
    plain = write_model(tmp_path / "plain", "llama")
    assert cli("inspect", plain, "--json").data["vision"] == "text only: vision_config is absent"


@pytest.mark.parametrize(
    ("field", "value"), [("vision_config", []), ("vision_config", "x"), ("language_model_only", 1)]
)
def test_a_deciding_field_of_another_type_is_named(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=field) as caught:
        vision_of({field: value}, (), "m/config.json")
    assert str(caught.value).startswith("m/config.json: ")
    assert caught.value.field == field and repr(value) in str(caught.value)


@pytest.mark.case("C21")
@pytest.mark.parametrize("section", ["absent", None, {}])
def test_c21_an_empty_vision_config_decides_nothing(tmp_path: Path, section: object) -> None:
    """C21: the first three are text-only."""
    config = config_of("llama", vision_config=section)
    write_model(tmp_path, "llama", {k: v for k, v in config.items() if v != "absent"})
    m = load(tmp_path)
    assert m.architecture.name == "llama" and m.half is None


@pytest.mark.case("C21")
def test_c21_a_text_model_does_not_take_what_has_a_vision_tower(tmp_path: Path) -> None:
    """C21: the fourth is a vision-language model, under the same name."""
    path = whole(tmp_path / "vlm", {}, TOWERS, **config_of("llama"), text_config=None)
    with pytest.raises(PluginError, match="takes text alone") as caught:
        load(path)
    assert "vision_tower.x.weight" in str(caught.value) and "text_only=True" in str(caught.value)
    m = load(path, text_only=True)
    assert m.half is not None and m.half.left_out == ("audio_tower", "multi_modal_projector", "vision_tower")
    assert mx.array_equal(m.model(TOKENS), logits(write_model(tmp_path / "plain", "llama"))).item()


@pytest.mark.case("C23")
@pytest.mark.parametrize("prefixes", [PUBLISHED, OF_NOW], ids=["published", "of now"])
@pytest.mark.parametrize("kind", ["llava", "unheard_of"])
@pytest.mark.parametrize("family", ["llama", "mixtral"])
def test_c23_the_text_half_loads_and_the_towers_are_reported(
    tmp_path: Path, kind: str, prefixes: dict[str, str], family: str
) -> None:
    """C23. Chosen: the text half loads; and what was left out is written back byte for byte."""
    extra = {(f"model.{name}" if prefixes is OF_NOW else name): shape for name, shape in TOWERS.items()}
    path = whole(tmp_path / "vlm", prefixes, extra, family, model_type=kind)
    with pytest.raises(PluginError, match=kind) as caught:
        load(path)
    assert f"text_only=True loads its text model alone, {family}" in str(caught.value)
    m = load(path, text_only=True)
    assert {each.name for each in m.report.dropped} == set(extra) and not m.report.missing
    assert "left out" in m.notes[0] and "vision_tower" in m.notes[0] and "audio_tower" in m.notes[0]
    assert mx.array_equal(m.model(TOKENS), logits(write_model(tmp_path / "plain", family))).item()
    m.save(tmp_path / "again")
    assert (tmp_path / "again/model.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match="text model alone"):
        m.save(tmp_path / "hf", layout="hf")


@pytest.mark.parametrize("section", [None, {}, "absent"])
@pytest.mark.parametrize("kind", ["mistral3", "unheard_of"])
def test_what_was_stripped_to_its_text_model_loads_as_one(tmp_path: Path, kind: str, section: object) -> None:
    path = whole(tmp_path / "stripped", PUBLISHED, {}, "mistral", model_type=kind, vision_config=section)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v != "absent"}))
    m = load(path)
    assert m.architecture.name == "mistral" and "by text_config.model_type" in m.notes[0]
    assert mx.array_equal(m.model(TOKENS), logits(write_model(tmp_path / "plain", "mistral"))).item()
    with pytest.raises(PluginError, match=kind):
        load(path, text_only=False)


def test_language_model_only_wins_over_vision_weights(tmp_path: Path) -> None:
    path = whole(tmp_path, PUBLISHED, TOWERS, language_model_only=True)
    m = load(path)
    assert m.half is not None and "model.vision_tower" in m.half.left_out


def test_language_model_only_leaves_towers_out_where_the_text_model_has_no_section(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m", "llama")
    found = {name: np.array(array) for name, array in mx.load(str(path / "model.safetensors")).items()}
    write(path / "model.safetensors", {**found, **filled(TOWERS, seed=3)})
    (path / "config.json").write_text(json.dumps(config_of("llama", language_model_only=True)))
    m = load(path)
    assert m.half is not None and "vision_tower" in m.half.left_out
    assert mx.array_equal(m.model(TOKENS), logits(write_model(tmp_path / "plain", "llama"))).item()
    with pytest.raises(PlanError, match="vision_tower"):
        load(path, text_only=False)


def test_language_model_only_without_towers_changes_nothing(tmp_path: Path) -> None:
    assert load(write_model(tmp_path, "llama", config_of("llama", language_model_only=True))).half is None


def test_an_audio_tower_is_never_left_out_unasked(tmp_path: Path) -> None:
    path = whole(tmp_path, PUBLISHED, {"audio_tower.y.weight": (3, 4)}, vision_config=None)
    with pytest.raises(PluginError, match="'llava'"):
        load(path)
    assert load(path, text_only=True).architecture.name == "llama"


@pytest.mark.parametrize("flag", [True, False])
def test_the_outer_flag_decides_of_the_tie(tmp_path: Path, flag: bool) -> None:
    """The whole's flag decides; without one, the text model's own does."""
    path = whole(tmp_path, PUBLISHED, TOWERS, tie_word_embeddings=flag, text_config=config_of("llama"))
    stored = {k: np.array(v) for k, v in mx.load(str(path / "model.safetensors")).items()}
    if flag:
        del stored["language_model.lm_head.weight"]
    write(path / "model.safetensors", stored)
    m = load(path, text_only=True)
    assert ("lm_head" in m.model) is not flag and not m.report.missing


@pytest.mark.parametrize("value", [[], "llama", 3])
def test_a_text_config_of_another_type_is_named(tmp_path: Path, value: object) -> None:
    path = whole(tmp_path, PUBLISHED, TOWERS, text_config=value)
    with pytest.raises(ConfigError, match="text_config is") as caught:
        load(path, text_only=True)
    assert caught.value.field == "text_config"


def test_a_text_model_without_a_type_is_named(tmp_path: Path) -> None:
    text = {k: v for k, v in config_of("llama").items() if k != "model_type"}
    path = whole(tmp_path, PUBLISHED, TOWERS, text_config=text)
    with pytest.raises(ConfigError) as caught:
        load(path, text_only=True)
    assert caught.value.field == "text_config.model_type"


def test_text_only_of_a_text_model_is_the_whole(tmp_path: Path) -> None:
    m = load(write_model(tmp_path, "llama"), text_only=True)
    assert m.half is None and not m.report.dropped


@pytest.mark.parametrize(
    "below", ["language_model.model", "model.language_model", "model.language_model.model", "model"]
)
def test_an_adapter_that_was_trained_on_the_whole_fits_the_text_model(tmp_path: Path, below: str) -> None:
    path = whole(tmp_path / "whole", OF_NOW, TOWERS)
    rng = np.random.default_rng(2)
    stem = f"base_model.model.{below}.layers.1.self_attn.q_proj"
    hidden = load(path, text_only=True).config["text_config"]["hidden_size"]
    factors = {
        f"{stem}.lora_A.weight": rng.standard_normal((2, hidden)).astype(np.float32),
        f"{stem}.lora_B.weight": rng.standard_normal((hidden, 2)).astype(np.float32),
    }
    (tmp_path / "adapter").mkdir()
    write(tmp_path / "adapter" / "adapter_model.safetensors", factors)
    said = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(said))
    plain = load(path, text_only=True)
    wanted = plain.model.model.layers[1].self_attn.q_proj.weight + 2 * (  # type: ignore[attr-defined]
        mx.array(factors[f"{stem}.lora_B.weight"]) @ mx.array(factors[f"{stem}.lora_A.weight"])
    )
    plain.model.model.layers[1].self_attn.q_proj.weight = wanted  # type: ignore[attr-defined]
    expected = plain.model(TOKENS)
    beside = load(path, text_only=True, adapter=tmp_path / "adapter")
    assert mx.allclose(beside.model(TOKENS), expected, atol=1e-4).item()
    fused = load(path, text_only=True, adapter=Fusing([(tmp_path / "adapter", 1.0)]))
    assert mx.allclose(fused.model(TOKENS), expected, atol=1e-4).item()
    beside.save_adapter(tmp_path / "again")
    again = (tmp_path / "again" / "adapter_model.safetensors").read_bytes()
    assert again == (tmp_path / "adapter" / "adapter_model.safetensors").read_bytes()
