"""Decoders of Mamba's mixers alone, of either kind, each after a norm."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from weightloom.plugins.configs.mamba_fields import MambaFields
from weightloom.plugins.layers.blocks import SingleBlock
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Names
from weightloom.plugins.layers.mixing import Mixer
from weightloom.plugins.layers.norms import narrowing_norm

NAMES = Names(embedding="embeddings", norm="norm_f", decoder="backbone")
SHARDING = {r"^(backbone\.embeddings|lm_head)\.": "vocab"}


def build_mamba(fields: MambaFields, mixer: Callable[[], Mixer]) -> CausalLM:
    """Make the module, with a mixer for each layer; its parameters are not computed."""
    size, norm = fields.hidden_size, narrowing_norm(fields.layer_norm_epsilon)
    residual = mx.float32 if fields.residual_in_fp32 else None
    blocks = [SingleBlock(mixer(), size, norm, residual) for _ in range(fields.num_hidden_layers)]
    return CausalLM(Decoder(fields.vocab_size, size, norm(size), blocks, names=NAMES), fields.tie_word_embeddings)
