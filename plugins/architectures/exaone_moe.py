"""K-EXAONE: layers that slide and turn, full ones between them that know no positions, experts by corrected scores.

The heads of queries and keys are normed. Without a window all layers see everything and turn. Published configs spell
which layers slide as letters, L for local and G for global. Parameters are named as Transformers 5 names those of
ExaoneMoeForCausalLM. Layers that guess further tokens are kept for saving and not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.scored_fields import ScoredFields
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import HEADS, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.scored_experts import CUTS, feed_forward
from weightloom.plugins.layers.scoring import Scoring
from weightloom.plugins.specs import hookimpl

_PATTERN = "sliding_window_pattern"


@dataclass(frozen=True, kw_only=True)
class Fields(ScoredFields):
    """What config.json says; defaults are the published ones."""

    called: ClassVar[Mapping[str, str]] = {"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts"}

    vocab_size: int = 102400
    hidden_size: int = 4096
    intermediate_size: int = 16384
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 32
    rms_norm_eps: float = 1e-5
    moe_intermediate_size: int = 1024
    n_routed_experts: int = 64
    n_shared_experts: int | None = 1
    num_experts_per_tok: int = 8
    first_k_dense_replace: int = 1
    n_group: int | None = 1
    topk_group: int | None = 1
    routed_scaling_factor: float = 2.5
    sliding_window: int | None = 4096
    sliding_window_pattern: int | None = 4

    @property
    def types(self) -> tuple[str, ...]:
        """Each layer's type: as listed, else one full layer in so many; all are full without a window."""
        by_number = self.layer_types is None and self.sliding_window is not None
        every = self.sliding_window_pattern if by_number else None
        return layer_types_of(self.layer_types, self.num_hidden_layers, FULL, every)


@dataclass(frozen=True)
class Config:
    """A config that fits together."""

    fields: Fields
    dense: DenseConfig


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, _spelt_out(content), Fields.called)
    fields.check()
    fields.check_experts()
    shape = AttentionShape.of(fields, norm_eps=fields.rms_norm_eps)
    return Config(fields, DenseConfig.of(fields, content, fields.types, shape))


def _spelt_out(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the config with a list of layer types in place of a pattern in letters."""
    letters, count = content.get(_PATTERN), content.get("num_hidden_layers")
    if not isinstance(letters, str):
        return content
    refuse_unless(letters != "" and set(letters) <= {"L", "G"}, _PATTERN, letters, "a number, or letters L and G")
    rest = {name: value for name, value in content.items() if name != _PATTERN}
    if rest.get("layer_types") is None and isinstance(count, int):
        kinds = {"L": SLIDING, "G": FULL}
        rest["layer_types"] = [kinds[letters[layer % len(letters)]] for layer in range(count)]
    return rest


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    fields, dense = config.fields, config.dense
    turns = [window is not None or fields.sliding_window is None for window in dense.windows]
    return build_dense(dense, turns=turns, fed=lambda layer: feed_forward(fields, layer, dense.act, Scoring.of(fields)))


EXAONE_MOE = Architecture(
    name="exaone_moe",
    model_types=("exaone_moe",),
    class_names=("ExaoneMoeForCausalLM",),
    task="generate",
    verified="Transformers 5.24 ExaoneMoeForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **CUTS},
)


class Plugin:
    """Offers K-EXAONE."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer K-EXAONE."""
        return (EXAONE_MOE,)


PLUGIN = Plugin()
