"""Configs with anything wrong with them: whatever is in the file, only a WeightloomError escapes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given

from tests.runtime.models import config_of
from tests.strategies.seeded import MANY, mutated, mutated_text, seeds
from weightloom.engine import Checkpoint, TensorSpec
from weightloom.engine.errors import WeightloomError
from weightloom.plugins import PluginManager, param_specs
from weightloom.runtime.choosing.choice import Wish, choose
from weightloom.runtime.choosing.decision import Asked
from weightloom.runtime.configs.config import Config, parse
from weightloom.runtime.configs.dtype_field import with_dtype_field
from weightloom.runtime.opening.opening import Opened
from weightloom.runtime.preparing.prepare import prepare
from weightloom.runtime.saving.mlx_config import config_in

MANAGER = PluginManager()
PLACE = Path("config.json")
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
BY_TYPE = {"full_attention": {"rope_theta": 1e4, "rope_type": "default"}, "sliding_attention": {"rope_theta": 1e3}}
SLIDING = {"layer_types": ["full_attention", "sliding_attention", "full_attention"], "sliding_window": 4}
PACKED = {"group_size": 32, "bits": 4, "model.layers.0.mlp.up_proj": {"group_size": 32, "bits": 8}}
BASES: tuple[dict[str, Any], ...] = (
    *(config_of(name) for name in ("bert", "llama", "mistral", "mixtral", "qwen3_moe")),
    config_of("llama", rope_scaling=YARN, architectures=["LlamaForCausalLM"], layer_types=["full_attention"] * 3),
    config_of("llama", rope_parameters=BY_TYPE, **SLIDING),
    config_of("llama", quantization=PACKED, eos_token_id=[1, 2], rope_theta=1e4),
    {"model_type": "llava", "text_config": config_of("mistral"), "vision_config": {"hidden_size": 4}},
    {"model_type": "mistral3", "text_config": config_of("llama"), "language_model_only": True},
)
WORDS = (
    *("model_type", "architectures", "text_config", "vision_config", "quantization", "quantization_config", "dtype"),
    *("rope_scaling", "rope_parameters", "type", "rope_type", "rope_theta", "factor", "head_dim", "layer_types"),
    *("llama", "LLaMA", "qwen3-moe", "bert", "yarn", "linear", "llama3", "full_attention", "sliding_attention"),
    *("num_local_experts", "sliding_window_pattern", "rope_local_base_freq", "bfloat16", "fp8", "quant_method"),
    *("torch_dtype", "silu"),
)
TEXTS = (b"NaN", b"-Infinity", b",", b'"', b"\xef\xbb\xbf", b"{", b"//", b"/*", b"None", b"\n", b"1e999", b"[", b"}")


@cache
def shapes(base: int) -> Mapping[str, TensorSpec]:
    """Give the tensors of a base config's model, below the name of a text model where it is one of several."""
    config = BASES[base]
    own = config.get("text_config", config)
    found = MANAGER.architecture(own["model_type"])
    specs = param_specs(found.build(found.read_config(own)))
    prefix = "language_model." if own is not config else ""
    return {f"{prefix}{name}": TensorSpec("F32", spec.shape) for name, spec in specs.items()}


def take(raw: bytes, specs: Mapping[str, TensorSpec], text_only: bool | None) -> None:
    """Take a config as far as it goes without a tensor's bytes: to the plan of a load, and as it would be written."""
    config = Config(PLACE, raw, parse(raw, PLACE))
    opened = Opened(PLACE, Checkpoint.from_specs(specs), config, None, lambda: None, dict, config)
    with_dtype_field(raw, "BF16")
    assert config.quantization is None or isinstance(config.quantization, str)
    prepare(opened, asked=Asked(text_only=text_only), manager=MANAGER)


@MANY
@given(seeds)
def test_only_named_errors_escape_a_mutated_config(random: Random) -> None:
    base = random.randrange(len(BASES))
    raw = json.dumps(mutated(BASES[base], random, WORDS)).encode()
    with contextlib.suppress(WeightloomError):
        take(raw, shapes(base), random.choice((None, True)))


@MANY
@given(seeds)
def test_only_named_errors_escape_a_mutated_text(random: Random) -> None:
    base = random.randrange(len(BASES))
    raw = mutated_text(json.dumps(BASES[base], indent=1).encode(), random, TEXTS)
    with contextlib.suppress(WeightloomError):
        take(raw, shapes(base), random.choice((None, True)))


@given(seeds)
def test_only_named_errors_escape_as_a_mutated_config_is_written(random: Random) -> None:
    raw = json.dumps(mutated(BASES[random.randrange(len(BASES))], random, WORDS)).encode()
    with contextlib.suppress(WeightloomError):
        config = Config(PLACE, raw, parse(raw, PLACE))
        json.loads(config_in("mlx", choose(config, Wish(), "here"), raw), parse_constant=pytest.fail)
