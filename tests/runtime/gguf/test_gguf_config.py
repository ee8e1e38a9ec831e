from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.gguf_files import KEYS, array, noise, write_gguf
from weightloom.engine.errors import ConfigError, WeightloomError
from weightloom.engine.gguf import open_gguf, read_gguf
from weightloom.runtime.gguf.config import gguf_config

TENSORS = [noise("token_embd.weight", "Q8_0", (12, 64)), array("output_norm.weight", [1.0] * 64)]
LAYER = [
    noise("blk.0.attn_q.weight", "Q4_0", (64, 64)),
    noise("blk.0.attn_k.weight", "Q4_0", (32, 64)),
    noise("blk.0.ffn_down.weight", "Q4_1", (64, 96)),
    noise("blk.0.ffn_up.weight", "Q5_0", (96, 64)),
]


def config_of(folder: Path, *tensors: Any, **changes: Any) -> dict[str, Any]:
    """Give the config with keys changed (`__` stands for a dot), or left out where the change is None."""
    changed = {key.replace("__", "."): value for key, value in changes.items()}
    keys = {key: value for key, value in {**KEYS, **changed}.items() if value is not None}
    path = write_gguf(folder / "m.gguf", keys, [*TENSORS, *tensors])
    with open_gguf(path) as checkpoint:
        return gguf_config(read_gguf(path), checkpoint)


def test_fields_as_published(tmp_path: Path) -> None:
    found = config_of(tmp_path)
    assert found.pop("quantization") == {"group_size": 32, "bits": 8}
    assert found == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 12,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "rope_theta": 500000.0,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def test_modules_that_differ_are_named_canonically(tmp_path: Path) -> None:
    assert config_of(tmp_path, *LAYER)["quantization"] == {
        "group_size": 32,
        "bits": 4,
        "model.embed_tokens": {"group_size": 32, "bits": 8},
        "model.layers.0.mlp.up_proj": {"group_size": 32, "bits": 5},
    }


def test_a_module_of_another_mode_is_named(tmp_path: Path) -> None:
    layer = [*LAYER[:2], noise("blk.0.ffn_up.weight", "MXFP4", (96, 64))]
    found = config_of(tmp_path, *layer)["quantization"]
    assert found["model.layers.0.mlp.up_proj"] == {"group_size": 32, "bits": 4, "mode": "mxfp4"}
    assert found["bits"] == 4 and "mode" not in found


def test_no_quantization_where_no_module_is_packed(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", KEYS, [array("token_embd.weight", [[0.0] * 64] * 12)])
    with open_gguf(path) as checkpoint:
        assert "quantization" not in gguf_config(read_gguf(path), checkpoint)


def test_what_tensors_say(tmp_path: Path) -> None:
    head = noise("output.weight", "Q8_0", (12, 64))
    found = config_of(tmp_path, head, array("blk.0.attn_q.bias", [0.0] * 64), array("blk.0.ffn_down.bias", [0.0]))
    assert (found["tie_word_embeddings"], found["attention_bias"], found["mlp_bias"]) == (False, True, True)


def test_heads_of_their_own_size(tmp_path: Path) -> None:
    sizes = {"llama__attention__key_length": 32, "llama__attention__value_length": 32}
    assert config_of(tmp_path, **sizes, llama__rope__dimension_count=32)["head_dim"] == 32


def test_a_window(tmp_path: Path) -> None:
    found = config_of(tmp_path, llama__attention__sliding_window=128)
    assert (found["sliding_window"], found["layer_types"]) == (128, ["sliding_attention"])


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, None),
        ({"type": "none"}, None),
        ({"type": "linear", "factor": 4.0}, {"rope_type": "linear", "type": "linear", "factor": 4.0}),
        (
            {"type": "yarn", "factor": 4.0, "original_context_length": 512},
            {"rope_type": "yarn", "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512},
        ),
        (
            {"type": "yarn", "factor": 4.0, "original_context_length": 512, "attn_factor": 0.5},
            {
                "rope_type": "yarn",
                "type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 512,
                "attention_factor": 0.5 * (0.1 * math.log(4.0) + 1),
            },
        ),
    ],
)
def test_stated_scaling(tmp_path: Path, changes: dict[str, Any], wanted: dict[str, Any] | None) -> None:
    found = config_of(tmp_path, **{f"llama__rope__scaling__{key}": value for key, value in changes.items()})
    assert found.get("rope_scaling") == wanted


def test_the_old_key_of_linear_scaling(tmp_path: Path) -> None:
    assert config_of(tmp_path, llama__rope__scale_linear=2.0)["rope_scaling"]["factor"] == 2.0


def divisors(factor: float, original: int) -> list[float]:
    """Llama 3.1's scaling by wavelengths (low 1, high 4); theta 500000 and heads of 16."""
    found = []
    for pair in range(8):
        wavelength = 2 * math.pi * 500000.0 ** (2 * pair / 16)
        if wavelength < original / 4:
            found.append(1.0)
        elif wavelength > original:
            found.append(factor)
        else:
            smooth = (original / wavelength - 1) / 3
            found.append(1 / ((1 - smooth) / factor + smooth))
    return found


@pytest.mark.parametrize(("factor", "original"), [(8.0, 8192), (32.0, 8192), (4.0, 4096)])
def test_the_settings_behind_divisors_are_found(tmp_path: Path, factor: float, original: int) -> None:
    found = config_of(tmp_path, array("rope_freqs.weight", divisors(factor, original)))["rope_scaling"]
    assert found == {
        "rope_type": "llama3",
        "type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": original,
    }


def test_divisors_of_one_are_no_scaling(tmp_path: Path) -> None:
    assert "rope_scaling" not in config_of(tmp_path, array("rope_freqs.weight", [1.0] * 8))


@pytest.mark.parametrize(
    "values", [[2.0] * 8, [1.0, 2.0] * 4, [0.0] * 8, [math.inf] * 8, [math.nan] * 8, [1.0] * 4 + [3.0] + [8.0] * 3]
)
def test_divisors_that_no_settings_give_are_refused(tmp_path: Path, values: list[float]) -> None:
    with pytest.raises(ConfigError, match="rope_freqs") as caught:
        config_of(tmp_path, array("rope_freqs.weight", values))
    assert caught.value.tensor == "rope_freqs.weight"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"general__architecture": "qwen2"}, "general.architecture", "one of llama"),
        ({"general__architecture": None}, "general.architecture", "no general.architecture"),
        ({"llama__expert_count": 8}, "llama.expert_count", "no experts"),
        ({"llama__embedding_length": None}, "llama.embedding_length", "no llama.embedding_length"),
        ({"llama__attention__head_count": 0}, "llama.attention.head_count", "one at least"),
        ({"llama__attention__head_count": [4, 4]}, "llama.attention.head_count", "one for all layers"),
        ({"llama__attention__value_length": 8}, "llama.attention.value_length", "as the keys have"),
        ({"llama__rope__dimension_count": 8}, "llama.rope.dimension_count", "whole heads"),
        ({"llama__rope__freq_base": 0.0}, "llama.rope.freq_base", "above 0"),
        ({"llama__rope__freq_base": math.nan}, "llama.rope.freq_base", "above 0"),
        ({"llama__rope__scaling__type": "longrope"}, "llama.rope.scaling.type", "linear or yarn"),
        ({"llama__rope__scaling__attn_factor": 1.5}, "llama.rope.scaling.attn_factor", "not yarn"),
        ({"llama__logit_scale": 0.5}, "llama.logit_scale", "0 or 1, or no such key"),
        ({"llama__residual_scale": 0.25}, "llama.residual_scale", "nothing here computes with it"),
        ({"llama__embedding_scale": 12.0}, "llama.embedding_scale", "nothing here computes with it"),
        ({"llama__attention__scale": 0.3}, "llama.attention.scale", "0, or no such key"),
        ({"llama__attention__clamp_kqv": 8.0}, "llama.attention.clamp_kqv", "nothing here computes with it"),
        ({"llama__attn_logit_softcapping": 50.0}, "llama.attn_logit_softcapping", "nothing here computes with it"),
        ({"llama__final_logit_softcapping": 30.0}, "llama.final_logit_softcapping", "nothing here computes with it"),
        ({"llama__use_parallel_residual": True}, "llama.use_parallel_residual", "False, or no such key"),
        ({"llama__attention__causal": False}, "llama.attention.causal", "True, or no such key"),
        ({"llama__rope__scaling__type": "linear"}, "llama.rope.scaling.factor", "above 0"),
        ({"llama__attention__layer_norm_rms_epsilon": "x"}, "llama.attention.layer_norm_rms_epsilon", "above 0"),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(tmp_path, **changes)
    assert (caught.value.field, caught.value.file) == (field, str(tmp_path / "m.gguf"))
    assert words in str(caught.value)


def test_keys_that_change_nothing_are_taken(tmp_path: Path) -> None:
    neutral = {"llama__logit_scale": 1.0, "llama__attention__clamp_kqv": 0.0, "llama__attention__causal": True}
    assert config_of(tmp_path, **neutral, llama__rope__scaling__attn_factor=1.0) == config_of(tmp_path)


@pytest.mark.parametrize("key", [key for key in KEYS if key != "general.architecture"])
@pytest.mark.parametrize("value", ["x", True, -1.5, [1], 0])
def test_only_errors_of_ours_escape(tmp_path: Path, key: str, value: Any) -> None:
    with suppress(WeightloomError):
        config_of(tmp_path, *LAYER, **{key.replace(".", "__"): value})
