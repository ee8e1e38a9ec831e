"""Phi-3 and Phi-4 (arXiv 2404.14219, 2503.01743): Llama with q, k and v in one matrix, and gate and up in another.

Long contexts come by LongRoPE, which early files call `su`, or `yarn` although it is none. Beyond the context that a
model was first trained for all positions turn otherwise, those of tokens seen before too. mlx-lm turns by the numbers
for long contexts at any length, and passes over windows.
Parameters are named as Transformers 5 names those of Phi3ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attention import FusedAttention
from weightloom.plugins.layers.cuts import FUSED, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.mlp import FusedMlp
from weightloom.plugins.specs import hookimpl

_ROPE_SECTIONS = ("rope_scaling", "rope_parameters")
_ORIGINAL = "original_max_position_embeddings"


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 4096


def read_config(content: Mapping[str, Any]) -> DenseConfig:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    types = (FULL if fields.sliding_window is None else SLIDING,) * fields.num_hidden_layers
    return DenseConfig.of(fields, _with_long_rope(content), types)


def _with_long_rope(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the content with rotary settings that say their kind, and the context that they were first trained for."""
    sections = {name: content[name] for name in _ROPE_SECTIONS if isinstance(content.get(name), Mapping)}
    known = any(_ORIGINAL in each for each in (content, *sections.values()))
    return {**content, **({} if known else {_ORIGINAL: 4096}), **{k: _named(v) for k, v in sections.items()}}


def _named(section: Mapping[str, Any]) -> Mapping[str, Any]:
    early = section.get("long_factor") is not None
    kinds = ("type", "rope_type")
    return {k: "longrope" if early and k in kinds and v in ("su", "yarn") else v for k, v in section.items()}


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config, FusedAttention, FusedMlp)


PHI3 = Architecture(
    name="phi3",
    model_types=("phi3",),
    class_names=("Phi3ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Phi3ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **FUSED},
)


class Plugin:
    """Offers Phi-3."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Phi-3."""
        return (PHI3,)


PLUGIN = Plugin()
