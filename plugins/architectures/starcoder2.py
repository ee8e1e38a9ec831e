"""StarCoder2 (arXiv 2402.19173): grouped-query attention and a plain feed-forward layer, layer norms, biases.

All layers slide where there is a window.
Parameters are named as Transformers 5 names those of Starcoder2ForCausalLM. mlx-lm passes over windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.mlp import PlainMlp
from weightloom.plugins.layers.norms import layer_norm
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    num_key_value_heads: int | None = 2
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 4096
    norm_epsilon: float = 1e-5
    use_bias: bool = True
    tie_word_embeddings: bool = True


def read_config(content: Mapping[str, Any]) -> DenseConfig:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check("norm_epsilon")
    shape = AttentionShape.of(fields, bias=fields.use_bias, out_bias=fields.use_bias)
    types = (FULL if fields.sliding_window is None else SLIDING,) * fields.num_hidden_layers
    known = replace(fields, rms_norm_eps=fields.norm_epsilon, mlp_bias=fields.use_bias)
    return DenseConfig.of(known, content, types, shape)


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config, mlp=partial(PlainMlp, names=("c_fc", "c_proj")), norm=layer_norm)


STARCODER2 = Architecture(
    name="starcoder2",
    model_types=("starcoder2",),
    class_names=("Starcoder2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Starcoder2ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={
        **VOCABULARY,
        **HEADS,
        r"mlp\.c_fc\.": "column",
        r"mlp\.c_proj\.(weight|scales|biases)$": "row",
    },
)


class Plugin:
    """Offers StarCoder2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer StarCoder2."""
        return (STARCODER2,)


PLUGIN = Plugin()
