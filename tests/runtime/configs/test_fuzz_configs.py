"""Configs with anything wrong with them: whatever is in the file, only a WeightloomError escapes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.models import config_of
from tests.strategies.mutations import junk, mutated
from weightloom.engine.errors import WeightloomError
from weightloom.plugins import PluginManager
from weightloom.plugins.evidence import evidence_of
from weightloom.plugins.repair import repaired_numbers
from weightloom.runtime.choosing.choice import Wish, choose
from weightloom.runtime.choosing.text_half import text_half
from weightloom.runtime.configs.config import Config, parse

MANAGER = PluginManager()
PLACE = Path("config.json")
NAMES = ("language_model.model.norm.weight", "vision_tower.x.weight", "lm_head.weight", "model.layers.0.w")
# Cheap enough for more than others get of the `thorough` profile.
_ASKED = settings.get_current_profile_name()
MANY = settings(max_examples=20_000 if _ASKED == "thorough" else 100)

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
BASES: tuple[dict[str, Any], ...] = (
    *(config_of(name) for name in ("bert", "llama", "mistral", "mixtral", "qwen3_moe")),
    config_of("llama", rope_scaling=YARN, architectures=["LlamaForCausalLM"], layer_types=["full_attention"] * 3),
    config_of("llama", rope_parameters={"full_attention": {"rope_theta": 1e4, "rope_type": "default"}}),
    {"model_type": "llava", "text_config": config_of("mistral"), "vision_config": {"hidden_size": 4}},
    {"model_type": "mistral3", "text_config": config_of("llama"), "language_model_only": True},
)
WORDS = ["yarn", "llama", "LLaMA", "qwen3-moe", "sliding_attention"]


def take(raw: bytes) -> None:
    """Take a config as far as it goes without a tensor: read, choose, judge, repair, read by its family."""
    config = Config(PLACE, raw, parse(raw, PLACE))
    with contextlib.suppress(WeightloomError):
        choose(config, Wish(), "here")
    with contextlib.suppress(WeightloomError):
        half = text_half(config.values, NAMES)
        read(half.model_type, half.config)
    evidence = evidence_of(config.values, NAMES[2:])
    assert config.quantization is None or isinstance(config.quantization, str)
    if config.model_type is not None:
        MANAGER.architecture(config.model_type, None, evidence)
        read(config.model_type, config.values)


def read(model_type: str, content: Any) -> None:
    found = MANAGER.architecture(model_type)
    found.read_config(content if found.fields is None else repaired_numbers(found.fields, content).content)


@MANY
@given(mutated(BASES, junk(*WORDS), sorted(BASES[3])))
def test_only_named_errors_escape_a_mutated_config(config: dict[str, Any]) -> None:
    with contextlib.suppress(WeightloomError):
        take(json.dumps(config).encode())


@MANY
@given(st.sampled_from(BASES), st.data())
def test_only_named_errors_escape_a_mutated_text(base: dict[str, Any], data: st.DataObject) -> None:
    raw = json.dumps(base, indent=1).encode()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(raw)))
        length = data.draw(st.integers(0, 12))
        put = data.draw(
            st.binary(max_size=4) | st.sampled_from([b"NaN", b"-Infinity", b",", b'"', b"\xef\xbb\xbf", b"{"])
        )
        raw = raw[:start] + put + raw[start + length :]
    with contextlib.suppress(WeightloomError):
        take(raw)
