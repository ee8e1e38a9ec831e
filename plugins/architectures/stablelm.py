"""StableLM 2 (arXiv 2402.17834): Llama with layer norms, heads of which a quarter turns, and options.

With `use_parallel_residual` attention and the feed-forward layer stand side by side after one norm; with `qk_layernorm`
each head of queries and keys has a layer norm of its own, without biases.
Parameters are named as Transformers 5 names those of StableLmForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block, ParallelBlock
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.norms import layer_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 4096
    layer_norm_eps: float = 1e-5
    use_qkv_bias: bool = False
    qk_layernorm: bool = False
    use_parallel_residual: bool = False


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    dense: DenseConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check("layer_norm_eps")
    shape = AttentionShape.of(fields, bias=fields.use_qkv_bias, out_bias=False)
    return Config(fields, DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers, shape, default_part=0.25))


class HeadNorms(nn.Module):
    """A layer norm a head, without biases: `norms`, a list of them."""

    def __init__(self, heads: int, head_dim: int, eps: float) -> None:
        super().__init__()
        self._eps = eps
        self.norms = [nn.LayerNorm(head_dim, eps, bias=False) for _ in range(heads)]

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, heads, head_dim) -> the same shape."""
        return mx.fast.layer_norm(x, None, None, self._eps) * mx.stack([each.weight for each in self.norms])


class HeadNormAttention(Attention):
    """Attention with a norm for each head, `q_layernorm` and `k_layernorm`."""

    def __init__(self, shape: AttentionShape, rope: Rope | None, eps: float) -> None:
        super().__init__(shape, rope)
        self.q_layernorm = HeadNorms(shape.heads, shape.head_dim, eps)
        self.k_layernorm = HeadNorms(shape.kv_heads, shape.head_dim, eps)

    def normed(self, queries: mx.array, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm queries and keys, (B, L, heads, head_dim) each."""
        return self.q_layernorm(queries), self.k_layernorm(keys), values


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, eps = config.fields, config.fields.layer_norm_eps
    return build_dense(
        config.dense,
        (lambda shape, rope: HeadNormAttention(shape, rope, eps)) if fields.qk_layernorm else Attention,
        block=ParallelBlock if fields.use_parallel_residual else Block,
        norm=lambda _: layer_norm(eps),
    )


STABLELM = Architecture(
    name="stablelm",
    model_types=("stablelm",),
    class_names=("StableLmForCausalLM",),
    task="generate",
    verified="Transformers 5.24 StableLmForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
)


class Plugin:
    """Offers StableLM."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer StableLM."""
        return (STABLELM,)


PLUGIN = Plugin()
