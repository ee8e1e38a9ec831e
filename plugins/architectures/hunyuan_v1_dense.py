"""Hunyuan, the dense ones: Llama's layers with norms on the heads of queries and keys, after these have turned.

Their rope is "dynamic" with an `alpha`, which stretches the base once, whatever the length. Keys are kept as they are
normed; so a rope that changes with the length, which no checkpoint of the family has, is refused.
Parameters are named as Transformers 5 names those of HunYuanDenseV1ForCausalLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL
from weightloom.plugins.configs.config import read, refuse_unless
from weightloom.plugins.configs.rope_config import refuse_changing
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.layers.late_norm_attention import LateNormAttention
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(TextFields):
    """What config.json says; defaults are the published ones."""

    rms_norm_eps: float = 1e-5
    use_qk_norm: bool = True


def read_config(content: Mapping[str, Any]) -> DenseConfig:
    """Read config.json's content; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    fields.check()
    refuse_unless(fields.use_qk_norm, "use_qk_norm", fields.use_qk_norm, "true, as every published model has it")
    config = DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers)
    refuse_changing(config.ropes[FULL])
    return config


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config, partial(LateNormAttention, norm_eps=config.fields.rms_norm_eps))


HUNYUAN_V1_DENSE = Architecture(
    name="hunyuan_v1_dense",
    model_types=("hunyuan_v1_dense",),
    class_names=("HunYuanDenseV1ForCausalLM",),
    task="generate",
    verified="Transformers 5.24 HunYuanDenseV1ForCausalLM",
    by_request=("rerank",),
    read_config=read_config,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=DENSE,
)


class Plugin:
    """Offers Hunyuan."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Hunyuan."""
        return (HUNYUAN_V1_DENSE,)


PLUGIN = Plugin()
