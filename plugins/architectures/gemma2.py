"""Gemma 2 (arXiv 2408.00118) and the text model of Gemma 3 (arXiv 2503.19786): four norms a block, sliding layers.

They are one architecture with two sets of defaults. Gemma 2 caps scores and logits, and every other layer slides.
Gemma 3 norms the heads of queries and keys in place of caps, five layers of six slide, and those turn by a base of
their own and are never scaled.

Both caps are obeyed where a config has them; Transformers 5 passes over `attn_logit_softcapping` of a Gemma 3. States
outgrow float16, so bfloat16 stays.
As an embedder, EmbeddingGemma, a Gemma 3 sees both ways: `use_bidirectional_attention` halves its window to each side.
mlx-lm 0.32 lets all layers of a Gemma 2 see all. Parameters are named as Transformers 5 names those of
Gemma2ForCausalLM and Gemma3ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import (
    FULL,
    layer_types_of,
    refuse_bidirectional,
    refuse_non_positive_where_given,
)
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.rope_sections import with_local_base
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.headless import classifier, embedder, sight_of
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import SandwichBlock
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM, capped
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.embedder import Sight
from weightloom.plugins.layers.masks import Mask, Window, mutual_mask
from weightloom.plugins.layers.norms import zero_centred_norm
from weightloom.plugins.layers.rope import Rope
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are those of a published Gemma 2."""

    vocab_size: int = 256000
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    head_dim: int | None = 256
    hidden_activation: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 8192
    tie_word_embeddings: bool = True
    sliding_window: int | None = 4096
    query_pre_attn_scalar: float = 256
    attn_logit_softcapping: float | None = 50.0
    final_logit_softcapping: float | None = 30.0
    use_bidirectional_attention: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Fields3(Fields):
    """The same; defaults are those of a published Gemma 3."""

    vocab_size: int = 262208
    max_position_embeddings: int = 131072
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None


def read_gemma2(content: Mapping[str, Any]) -> DenseConfig:
    """Read a Gemma 2's config.json; raises ConfigError naming the field that is off."""
    return _checked(read(Fields, content), content, 2, 10000.0, norm_eps=None)


def read_gemma3(content: Mapping[str, Any]) -> DenseConfig:
    """Read config.json of a Gemma 3's text model; raises ConfigError naming the field that is off."""
    fields = read(Fields3, content)
    return _checked(fields, with_local_base(content), 6, 1000000.0, fields.rms_norm_eps)


def _checked(
    fields: Fields, content: Mapping[str, Any], one_full_in: int, default_theta: float, norm_eps: float | None
) -> DenseConfig:
    fields.check("query_pre_attn_scalar")
    caps = ("attn_logit_softcapping", "final_logit_softcapping")
    refuse_non_positive_where_given({name: getattr(fields, name) for name in caps})
    refuse_bidirectional(fields.use_bidirectional_attention)
    every = fields.sliding_window_pattern or (one_full_in if fields.layer_types is None else None)
    types = layer_types_of(fields.layer_types, fields.num_hidden_layers, FULL, every)
    shape = AttentionShape.of(
        fields,
        norm_eps=norm_eps,
        scale=fields.query_pre_attn_scalar**-0.5,
        softcap=fields.attn_logit_softcapping,
    )
    made = DenseConfig.of(fields, content, types, shape, default_theta)
    return replace(made, act=activation(fields.hidden_activation, "hidden_activation"))


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields = config.fields
    assert isinstance(fields, Fields)
    return build_dense(
        config,
        attention=_attention,
        block=SandwichBlock,
        norm=zero_centred_norm,
        embed_scale=sqrt(fields.hidden_size),
        finish=capped(fields.final_logit_softcapping),
    )


def _attention(shape: AttentionShape, rope: Rope | None) -> Attention:
    return Attention(shape, rope, None if shape.norm_eps is None else zero_centred_norm(shape.norm_eps))


def sight_of_gemma3(content: Mapping[str, Any]) -> Sight:
    """Give what tokens of EmbeddingGemma (arXiv 2509.20354) see by config.json's content, or of another embedder."""
    flagged = content.get("use_bidirectional_attention") is True
    return within_the_window if flagged else sight_of(content)


def within_the_window(length: int, window: Window, present: mx.array | None) -> Mask:
    """Let tokens see all, or, where there is a window, half of it to either side."""
    return mutual_mask(length, window // 2 + 1 if isinstance(window, int) else None, present)


GEMMA2 = Architecture(
    name="gemma2",
    model_types=("gemma2",),
    class_names=("Gemma2ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Gemma2ForCausalLM",
    by_request=("rerank",),
    read_config=read_gemma2,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    keeps_bf16=True,
    sharding=DENSE,
)
GEMMA3 = Architecture(
    name="gemma3_text",
    model_types=("gemma3_text",),
    class_names=("Gemma3ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 Gemma3ForCausalLM",
    by_request=("rerank",),
    read_config=read_gemma3,
    build=build,
    fields=Fields3,
    adapters=("lora", "dora"),
    keeps_bf16=True,
    sharding=DENSE,
)


class Plugin:
    """Offers both, as embedders and classifiers too."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Gemma 2 and the text model of Gemma 3."""
        gemma2 = (GEMMA2, embedder(GEMMA2, "Gemma2Model"), classifier(GEMMA2, "Gemma2ForSequenceClassification"))
        gemma3 = (GEMMA3, embedder(GEMMA3, "Gemma3TextModel", sight=sight_of_gemma3))
        return (*gemma2, *gemma3, classifier(GEMMA3, "Gemma3TextForSequenceClassification"))


PLUGIN = Plugin()
