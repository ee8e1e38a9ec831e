"""adapter_config.json: every field that decides, and every one that is refused."""

from __future__ import annotations

import json
from dataclasses import fields
from math import isfinite, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine.errors import CheckpointError, ConfigError, WeightloomError
from weightloom.runtime.adapting.adapter_config import AdapterConfig, read_adapter_config

BASE = {"peft_type": "LORA", "r": 4, "lora_alpha": 8}


def config(folder: Path, **values: Any) -> AdapterConfig:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**BASE, **values}))
    return read_adapter_config(path)


@pytest.mark.parametrize(
    ("values", "rank", "scale"),
    [
        ({}, 4, 2),
        ({"lora_alpha": 3.0}, 4, 0.75),
        ({"use_rslora": True}, 4, 4),
        ({"use_rslora": True, "r": 2}, 2, 8 / sqrt(2)),
        ({"rank_pattern": {"q_proj": 2}}, 2, 4),
        ({"rank_pattern": {"k_proj": 2, "layers.0.attn.q_proj": 1, "q_proj": 3}}, 1, 8),
        ({"alpha_pattern": {r"layers\.[0-3]\..*q_proj": 100}}, 4, 25),
        ({"alpha_pattern": {"_proj": 100}}, 4, 2),
        ({"alpha_pattern": {"q|q_proj": 100}}, 4, 25),
        ({"rank_pattern": {}, "alpha_pattern": None}, 4, 2),
    ],
    ids=str,
)
def test_rank_and_scale(values: dict[str, Any], rank: int, scale: float, tmp_path: Path) -> None:
    read = config(tmp_path, **values)
    module = "model.layers.0.attn.q_proj"
    assert (read.rank(module), read.scale(module)) == (rank, pytest.approx(scale))


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"r": 0}, "r"),
        ({"r": 2.5}, "r"),
        ({"r": True}, "r"),
        ({"r": 10**400}, "r"),
        ({"alpha_pattern": {"q": 10**400}}, "alpha_pattern.q"),
        ({"rank_pattern": {"q": 2**40}}, "rank_pattern.q"),
        ({"lora_alpha": "8"}, "lora_alpha"),
        ({"lora_alpha": None}, "lora_alpha"),
        ({"use_rslora": "yes"}, "use_rslora"),
        ({"rank_pattern": [1]}, "rank_pattern"),
        ({"rank_pattern": {"q": 0}}, "rank_pattern.q"),
        ({"alpha_pattern": {"q": "1"}}, "alpha_pattern.q"),
        ({"alpha_pattern": {"(": 1}}, "("),
        ({"peft_type": "IA3"}, "peft_type"),
        ({"bias": "some"}, "bias"),
        ({"fan_in_fan_out": "yes"}, "fan_in_fan_out"),
        ({"use_dora": True, "target_parameters": ["gate"]}, "use_dora"),
        ({"peft_version": 0.19}, "peft_version"),
        ({"lora_bias": True}, "lora_bias"),
        ({"layer_replication": [[0, 4]]}, "layer_replication"),
        ({"init_lora_weights": "pissa_niter_16"}, "init_lora_weights"),
        ({"init_lora_weights": "olora"}, "init_lora_weights"),
        ({"init_lora_weights": "corda"}, "init_lora_weights"),
        ({"init_lora_weights": "lora_ga"}, "init_lora_weights"),
        ({"init_lora_weights": "loftq"}, "init_lora_weights"),
        ({"target_parameters": "gate"}, "target_parameters"),
    ],
    ids=str,
)
def test_what_cannot_be_is_named(values: dict[str, Any], field: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, **values)
    assert caught.value.field == field
    assert caught.value.file == str(tmp_path / "adapter_config.json")


@pytest.mark.parametrize(
    "kind", ["IA3", "LOHA", "LOKR", "ADALORA", "PROMPT_TUNING", "PREFIX_TUNING", "OFT", "XLORA", 3]
)
def test_another_kind_is_named_whatever_its_fields_are(kind: object, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": kind, "num_virtual_tokens": 8}))
    with pytest.raises(ConfigError, match=rf"peft_type is {kind!r}[^$]*expected: LORA") as caught:
        read_adapter_config(tmp_path / "adapter_config.json")
    assert caught.value.field == "peft_type"


@pytest.mark.parametrize("begun", [True, False, "gaussian", "eva", "orthogonal", "mica"])
def test_beginnings_that_leave_the_base_as_it_is(begun: object, tmp_path: Path) -> None:
    """Their factors are those of any other adapter once they are trained; only PiSSA's kin take from the base."""
    assert config(tmp_path, init_lora_weights=begun).scale("q_proj") == 2


def test_an_alpha_beyond_floats_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 1, "lora_alpha": 1e999}')
    with pytest.raises(ConfigError, match="lora_alpha is inf"):
        read_adapter_config(tmp_path / "adapter_config.json")


def test_a_field_that_is_not_known_is_a_note_if_it_says_something(tmp_path: Path) -> None:
    assert config(tmp_path, later=None, silent=False, task_type="CAUSAL_LM", init_lora_weights=True).notes == ()
    assert config(tmp_path, notes=["x"], later=3).notes == (
        "adapter_config.json: later is not known, and does nothing",
    )


def test_patterns_that_match_nothing_are_named(tmp_path: Path) -> None:
    read = config(tmp_path, rank_pattern={"q_proj": 1, "^v": 2}, alpha_pattern={"nothing": 1})
    assert [line.partition(": ")[2] for line in read.unmatched(("model.q_proj", "model.v_proj"))] == [
        "rank_pattern has '^v', which is the ending of no module's name here",
        "alpha_pattern has 'nothing', which is the ending of no module's name here",
    ]


def test_modules_that_were_saved_and_are_not_in_the_file_are_named(tmp_path: Path) -> None:
    read = config(tmp_path, modules_to_save=["lm_head", "embed_tokens", "score"])
    names = ("base_model.model.lm_head.weight", "base_model.model.score.modules_to_save.default.bias")
    assert list(read.unsaved(names)) == [
        "adapter_config.json: modules_to_save has 'embed_tokens', of which the file has nothing: the base's stays"
    ]


@pytest.mark.parametrize("text", ["[]", "{", '{"r": 1, "r": 2}', "\xff"])
def test_what_is_no_object(text: str, tmp_path: Path) -> None:
    path = tmp_path / "adapter_config.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CheckpointError):
        read_adapter_config(path)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["(a+)+$", "q_proj"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from([*(field.name for field in fields(AdapterConfig)), "fan_in_fan_out", "lora_bias", "later"])


@given(st.dictionaries(FIELDS, JSON, max_size=6))
def test_only_errors_of_ours_escape(values: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        try:
            read = config(Path(folder), **values)
            assert read.rank("model.q_proj") > 0 and isfinite(read.scale("model.q_proj"))
        except WeightloomError:
            pass
