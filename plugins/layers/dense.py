"""Dense decoders as Llama has them: attention, then a gated feed-forward layer, in each of the blocks.

What such a config comes to, and its module. A family that makes a part in its own way hands in what makes it. How such
a decoder is cut among ranks is `cuts.DENSE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.configs.checks import window_of
from weightloom.plugins.configs.rope_config import RopeConfig, read_rope
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import Attention, AttentionShape
from weightloom.plugins.layers.blocks import Block
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Layer
from weightloom.plugins.layers.masks import Window
from weightloom.plugins.layers.mlp import GatedMlp
from weightloom.plugins.layers.norms import Norm, rms_norm
from weightloom.plugins.layers.rope import Rope

MakeAttention = Callable[[AttentionShape, Rope | None], nn.Module]
MakeMlp = Callable[[int, int, Activation, bool], nn.Module]
MakeBlock = Callable[[nn.Module, nn.Module, int, Norm, Window], Layer]


@dataclass(frozen=True)
class DenseConfig:
    """A config that fits together. `windows` has an entry a layer, `ropes` one a layer type."""

    fields: TextFields
    attention: AttentionShape
    act: Activation
    layer_types: tuple[str, ...]
    windows: tuple[int | None, ...]
    ropes: Mapping[str, RopeConfig]

    @classmethod
    def of(
        cls,
        fields: TextFields,
        content: Mapping[str, Any],
        layer_types: tuple[str, ...],
        shape: AttentionShape | None = None,
        default_theta: float = 10000.0,
        default_part: float = 1.0,
    ) -> DenseConfig:
        """Give what a config comes to; raises ConfigError, naming the field, where its parts do not fit."""
        trained = fields.max_position_embeddings
        return cls(
            fields,
            shape or AttentionShape.of(fields),
            activation(fields.hidden_act),
            layer_types,
            tuple(window_of(each, fields.sliding_window) for each in layer_types),
            read_rope(content, fields.head_size, trained, default_theta, layer_types, default_part),
        )


def build_dense(
    config: DenseConfig,
    attention: MakeAttention = Attention,
    mlp: MakeMlp = GatedMlp,
    turns: Sequence[bool] | None = None,
    fed: Callable[[int], nn.Module] | None = None,
    block: MakeBlock = Block,
    rope: Callable[[RopeConfig, int], Rope] = Rope,
    norm: Callable[[float], Norm] = rms_norm,
    embed_scale: float = 1.0,
    finish: Callable[[mx.array], mx.array] | None = None,
    model: type[CausalLM] = CausalLM,
) -> CausalLM:
    """Make the module; its parameters are not computed.

    `turns` says whose heads turn, by layer; without it, all do. `fed` makes the feed-forward layer of a layer, counted
    from 0, where they differ or are of experts, in the place of `mlp`. `embed_scale` and `finish` are as for `Decoder`
    and `CausalLM`, the others what makes each part.
    """
    fields = config.fields
    turns = turns or [True] * fields.num_hidden_layers
    ropes = {name: rope(each, config.attention.head_dim) for name, each in config.ropes.items()}
    normed = norm(fields.rms_norm_eps)
    blocks = [
        block(
            attention(config.attention, ropes[layer_type] if turned else None),
            mlp(fields.hidden_size, fields.intermediate_size, config.act, fields.mlp_bias)
            if fed is None
            else fed(layer),
            fields.hidden_size,
            normed,
            window,
        )
        for layer, (layer_type, window, turned) in enumerate(
            zip(config.layer_types, config.windows, turns, strict=True)
        )
    ]
    decoder = Decoder(fields.vocab_size, fields.hidden_size, normed(fields.hidden_size), blocks, embed_scale)
    return model(decoder, fields.tie_word_embeddings, finish)
