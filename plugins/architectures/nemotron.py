"""Nemotron-4 (arXiv 2402.16819): layer norms that add one to their weights, half of each head turned, no gate.

Parameters are named as Transformers 5 names those of NemotronForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.cuts import HEADS, PLAIN, VOCABULARY
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.mlp import PlainMlp
from weightloom.plugins.layers.norms import zero_centred_layer_norm
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones. Its `norm_eps` is `rms_norm_eps` here."""

    hidden_act: str = "relu2"
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 4096


def read_config(content: Mapping[str, Any]) -> DenseConfig:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content, {"rms_norm_eps": "norm_eps"})
    fields.check()
    return DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers, default_part=0.5)


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config, mlp=PlainMlp, norm=zero_centred_layer_norm)


NEMOTRON = Architecture(
    name="nemotron",
    model_types=("nemotron",),
    class_names=("NemotronForCausalLM",),
    task="generate",
    verified="Transformers 5.24 NemotronForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding={**VOCABULARY, **HEADS, **PLAIN},
)


class Plugin:
    """Offers Nemotron-4."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Nemotron-4."""
        return (NEMOTRON,)


PLUGIN = Plugin()
