"""GPT-2: attention and a plain feed-forward layer, layer norms, and an embedding for each position.

Files have matrices as (inputs, outputs), which Transformers keeps; here they are turned to rows of outputs, as those of
all linear layers, so that they can be packed like these. mlx-lm turns them in its files.
Parameters are named as Transformers 5 names those of GPT2LMHeadModel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn

from weightloom.engine import RuleSet, Transpose, WeightConverter
from weightloom.engine.errors import UsageError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import head_dim_of, refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.layers.activations import Activation, activation
from weightloom.plugins.layers.attention import AttentionShape, FusedAttention
from weightloom.plugins.layers.cache import Cache, positions_of
from weightloom.plugins.layers.decoder import CausalLM, Decoder, Layer, Names
from weightloom.plugins.layers.mixer_block import MixerBlock, Parts
from weightloom.plugins.layers.mlp import PlainMlp
from weightloom.plugins.layers.norms import layer_norm
from weightloom.plugins.specs import hookimpl

TURNED = WeightConverter(r"\.(c_attn|c_proj|c_fc)\.weight", r".\1.weight", [Transpose(0, 1)])
PARTS = Parts("attn", "ln_1", "mlp", "ln_2")
_SIZES = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "layer_norm_epsilon")


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    add_cross_attention: bool = False
    tie_word_embeddings: bool = True

    def check(self) -> None:
        """Raise ConfigError, naming the field, for what no model can be made of."""
        inner = {} if self.n_inner is None else {"n_inner": self.n_inner}
        refuse_non_positive({**{name: getattr(self, name) for name in _SIZES}, **inner})
        refuse_unless(self.n_embd % self.n_head == 0, "n_embd", self.n_embd, f"a multiple of n_head, {self.n_head}")
        refuse_unless(
            not self.add_cross_attention, "add_cross_attention", True, "false: there is no encoder to look at"
        )


@dataclass(frozen=True)
class Config:
    """A config that fits together; `attention` has an entry a layer."""

    fields: Fields
    attention: tuple[AttentionShape, ...]
    act: Activation
    inner: int


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    head_dim = head_dim_of(None, fields.n_embd, fields.n_head, whole="n_embd")
    whole = head_dim**-0.5 if fields.scale_attn_weights else 1.0
    shapes = (
        AttentionShape(
            fields.n_embd,
            fields.n_head,
            fields.n_head,
            head_dim,
            bias=True,
            out_bias=True,
            scale=whole / layer if fields.scale_attn_by_inverse_layer_idx else whole,
        )
        for layer in range(1, fields.n_layer + 1)
    )
    act = activation(fields.activation_function, "activation_function")
    return Config(fields, tuple(shapes), act, 4 * fields.n_embd if fields.n_inner is None else fields.n_inner)


class GPT2Attention(FusedAttention):
    """Attention whose matrices are `c_attn`, for queries, keys and values, and `c_proj`."""

    def add_projections(self, shape: AttentionShape) -> None:
        """Add the two matrices."""
        self.c_attn = nn.Linear(shape.hidden_size, 3 * shape.hidden_size, bias=shape.bias)
        self.c_proj = nn.Linear(shape.hidden_size, shape.hidden_size, bias=shape.out_bias)

    def project(self, x: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """(B, L, hidden_size) -> queries, keys and values, (B, L, heads, head_dim) each."""
        return self.parts(self.c_attn(x))

    def out(self, mixed: mx.array, x: mx.array) -> mx.array:
        """(B, L, heads * head_dim) -> (B, L, hidden_size)."""
        made: mx.array = self.c_proj(mixed)
        return made


def _block(config: Config, shape: AttentionShape) -> MixerBlock:
    size, norm = config.fields.n_embd, layer_norm(config.fields.layer_norm_epsilon)
    mlp = PlainMlp(size, config.inner, config.act, bias=True, names=("c_fc", "c_proj"))
    return MixerBlock(GPT2Attention(shape, None), mlp, size, norm, PARTS)


class GPT2Decoder(Decoder):
    """A decoder that adds to each token the embedding of its position, `wpe`."""

    def __init__(self, fields: Fields, layers: Sequence[Layer]) -> None:
        names = Names(embedding="wte", layers="h", norm="ln_f", decoder="transformer")
        norm = layer_norm(fields.layer_norm_epsilon)(fields.n_embd)
        super().__init__(fields.vocab_size, fields.n_embd, norm, layers, names=names)
        self._count = fields.n_positions
        self.wpe = nn.Embedding(fields.n_positions, fields.n_embd)

    def embed(self, tokens: mx.array, first: Cache, dtype: mx.Dtype) -> mx.array:
        """Tokens (B, L) int -> (B, L, hidden_size), `dtype`; raises UsageError where the positions do not reach."""
        length, positions = tokens.shape[1], positions_of(first, tokens.shape[1])
        if first.offset + length > self._count and cast(int, positions.max().item()) >= self._count:
            raise UsageError(
                f"{first.offset + length} tokens", expected=f"{self._count} at most: n_positions", field="n_positions"
            )
        placed: mx.array = super().embed(tokens, first, dtype) + self.wpe(positions).astype(dtype)
        return placed


def rewrite_rules(rules: RuleSet, config: Mapping[str, Any]) -> RuleSet:
    """Leave matrices as they are in a layout whose rules turn them: turned back they are what they were."""
    turning = [rule for rule in rules if isinstance(rule, WeightConverter) and rule.operations == TURNED.operations]
    if len(turning) < 2:
        return rules
    return RuleSet((rule for rule in rules if rule not in turning), rules.base_model_prefix)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    decoder = GPT2Decoder(config.fields, [_block(config, shape) for shape in config.attention])
    model = CausalLM(decoder, config.fields.tie_word_embeddings)
    model.max_length = config.fields.n_positions
    return model


GPT2 = Architecture(
    name="gpt2",
    model_types=("gpt2",),
    class_names=("GPT2LMHeadModel",),
    base_model_prefix="transformer",
    task="generate",
    verified="Transformers 5.24 GPT2LMHeadModel",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters="its matrices are stored (inputs, outputs) and turned as they are read, which factors of adapters are not",
    rules=RuleSet([TURNED]),
    rewrite_rules=rewrite_rules,
    sharding={
        r"^(transformer\.wte|lm_head)\.": "vocab",
        r"mlp\.c_fc\.": "column",
        r"mlp\.c_proj\.(weight|scales|biases)$": "row",
    },
)


class Plugin:
    """Offers GPT-2."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer GPT-2."""
        return (GPT2,)


PLUGIN = Plugin()
