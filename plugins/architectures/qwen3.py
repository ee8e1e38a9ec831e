"""Qwen2 and Qwen3 (arXiv 2407.10671, 2505.09388): decoders as Llama's with another attention.

Qwen2 has a bias on q, k and v and on nothing else; Qwen3 has norms on the heads of queries and keys instead, and a size
of heads of its own. Where `use_sliding_window` is on, the layers from number `max_window_layers` (from 0) on slide.
Parameters are named as Transformers 5 names those of Qwen2ForCausalLM and Qwen3ForCausalLM. mlx-lm passes over windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.headless import classifier, embedder
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What Qwen2's config.json says; defaults are the published ones."""

    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    sliding_window: int | None = 4096
    max_window_layers: int = 28

    def types(self) -> tuple[str, ...]:
        """Give each layer's type: as listed, else by its number; raises ConfigError for a list that cannot be."""
        slides = self.sliding_window is not None
        full = min(max(self.max_window_layers, 0), self.num_hidden_layers) if slides else self.num_hidden_layers
        by_number = (FULL,) * full + (SLIDING,) * (self.num_hidden_layers - full)
        return layer_types_of(self.layer_types or by_number, self.num_hidden_layers, FULL)


@dataclass(frozen=True, kw_only=True)
class Qwen3Fields(Fields):
    """What Qwen3's config.json says; defaults are the published ones."""

    head_dim: int | None = 128


def read_qwen2(content: Mapping[str, Any]) -> DenseConfig:
    """Read Qwen2's config.json; raises ConfigError naming the field that is off."""
    fields = _fields(Fields, content)
    return DenseConfig.of(fields, content, fields.types(), AttentionShape.of(fields, bias=True, out_bias=False))


def read_qwen3(content: Mapping[str, Any]) -> DenseConfig:
    """Read Qwen3's config.json; raises ConfigError naming the field that is off."""
    fields = _fields(Qwen3Fields, content)
    return DenseConfig.of(fields, content, fields.types(), AttentionShape.of(fields, norm_eps=fields.rms_norm_eps))


def _fields(kind: type[Fields], content: Mapping[str, Any]) -> Fields:
    fields = read(kind, content)
    fields.check()
    return fields if fields.use_sliding_window else replace(fields, sliding_window=None)


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config)


QWEN2 = Architecture(
    name="qwen2",
    model_types=("qwen2",),
    class_names=("Qwen2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Qwen2ForCausalLM",
    by_request=("rerank",),
    read_config=read_qwen2,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)
QWEN3 = Architecture(
    name="qwen3",
    model_types=("qwen3",),
    class_names=("Qwen3ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Qwen3ForCausalLM",
    by_request=("rerank",),
    read_config=read_qwen3,
    build=build,
    fields=Qwen3Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers both, as embedders and classifiers too."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Qwen2 and Qwen3."""
        qwen2 = (QWEN2, embedder(QWEN2, "Qwen2Model"), classifier(QWEN2, "Qwen2ForSequenceClassification"))
        qwen3 = (QWEN3, embedder(QWEN3, "Qwen3Model"), classifier(QWEN3, "Qwen3ForSequenceClassification"))
        return (*qwen2, *qwen3)


PLUGIN = Plugin()
