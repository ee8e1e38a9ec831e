"""SmolLM3: Llama in which some layers, every fourth by default, do not tell positions apart (arXiv 2501.18795).

`no_rope_layers` has 1 for a layer whose heads turn and 0 for one whose heads do not. With `use_sliding_window` those
that do not turn slide, unless `layer_types` says otherwise.
Parameters are named as Transformers 5 names those of SmolLM3ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of, refuse_non_positive
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 32768
    tie_word_embeddings: bool = True
    use_sliding_window: bool = False
    no_rope_layers: tuple[int, ...] | None = None
    no_rope_layer_interval: int = 4

    def turns(self) -> tuple[bool, ...]:
        """Say of each layer whether its heads turn; raises ConfigError for a list that is too short."""
        count, given = self.num_hidden_layers, self.no_rope_layers
        if given is None:
            refuse_non_positive({"no_rope_layer_interval": self.no_rope_layer_interval})
            return tuple(layer % self.no_rope_layer_interval != 0 for layer in range(1, count + 1))
        refuse_unless(len(given) >= count, "no_rope_layers", f"a list of {len(given)}", f"{count} entries, one a layer")
        return tuple(bool(each) for each in given[:count])


@dataclass(frozen=True)
class Config:
    """A config that fits together; `turns` has an entry a layer."""

    dense: DenseConfig
    turns: tuple[bool, ...]


def read_config(content: Mapping[str, Any]) -> Config:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    turns = fields.turns()
    fields = fields if fields.use_sliding_window else replace(fields, sliding_window=None)
    slides = fields.sliding_window is not None
    by_turn = tuple(SLIDING if slides and not each else FULL for each in turns)
    types = layer_types_of(fields.layer_types or by_turn, fields.num_hidden_layers, FULL)
    return Config(DenseConfig.of(fields, content, types, default_theta=2000000.0), turns)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config.dense, turns=config.turns)


SMOLLM3 = Architecture(
    name="smollm3",
    model_types=("smollm3",),
    class_names=("SmolLM3ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 SmolLM3ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers SmolLM3."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer SmolLM3."""
        return (SMOLLM3,)


PLUGIN = Plugin()
