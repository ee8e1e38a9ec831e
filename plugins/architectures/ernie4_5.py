"""ERNIE 4.5, the dense ones: Llama's layers, but neighbours of a head turn against each other; biases by `use_bias`.

Parameters are named as Transformers 5 names those of Ernie4_5ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.rope import interleaved
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones. `use_bias` is for all matrices of a layer."""

    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 131072
    tie_word_embeddings: bool = True
    use_bias: bool | None = False


def read_config(content: Mapping[str, Any]) -> DenseConfig:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    bias = bool(fields.use_bias)
    biased = replace(fields, attention_bias=bias, mlp_bias=bias)
    return DenseConfig.of(biased, content, (FULL,) * fields.num_hidden_layers, default_theta=500000.0)


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config, rope=interleaved)


ERNIE4_5 = Architecture(
    name="ernie4_5",
    model_types=("ernie4_5",),
    class_names=("Ernie4_5ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Ernie4_5ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers ERNIE 4.5."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer ERNIE 4.5."""
        return (ERNIE4_5,)


PLUGIN = Plugin()
