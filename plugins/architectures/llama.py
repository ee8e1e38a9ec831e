"""Llama, and what is a Llama with other defaults: Mistral, EXAONE 3, InternLM 2 and 3, Seed-OSS.

A Mistral config that is silent has a window and eight key and value heads, and all its layers slide; a Llama's layers
slide only where `layer_types` says so. EXAONE's first files call some fields and all parameters otherwise. InternLM's
`qkv_bias` is of q, k and v, its `bias` of all other matrices; Transformers refuses a config in which they differ.
Seed-OSS has a bias of its own for what leaves attention. InternLM 2's `bias` is of all matrices of attention.
Parameters are named as Transformers 5 names those of LlamaForCausalLM, which is its class for EXAONE and InternLM 3 as
well; for InternLM 2 it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import FULL, SLIDING, layer_types_of
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.names import also_named
from weightloom.plugins.configs.text_fields import TextFields
from weightloom.plugins.headless import classifier, embedder
from weightloom.plugins.layers.attention import AttentionShape
from weightloom.plugins.layers.cuts import DENSE
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.dense import DenseConfig, build_dense
from weightloom.plugins.specs import hookimpl

Fields: TypeAlias = TextFields
Config: TypeAlias = DenseConfig

EXAONE_NAMES = {
    "num_layers": "num_hidden_layers",
    "layer_norm_epsilon": "rms_norm_eps",
    "activation_function": "hidden_act",
}
INTERNLM_NAMES = {"qkv_bias": "attention_bias", "bias": "mlp_bias"}


@dataclass(frozen=True, kw_only=True)
class ExaoneFields(TextFields):
    """What EXAONE 3's config.json says, under Transformers' names."""

    num_key_value_heads: int | None = 8
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 4096


@dataclass(frozen=True, kw_only=True)
class InternLMFields(TextFields):
    """What InternLM 3's config.json says, under Transformers' names."""

    num_key_value_heads: int | None = 2
    head_dim: int | None = 128
    rms_norm_eps: float = 1e-5
    max_position_embeddings: int = 32768


@dataclass(frozen=True, kw_only=True)
class InternLM2Fields(TextFields):
    """What InternLM 2's config.json says; `attention_bias` is its `bias`."""

    attention_bias: bool = True


@dataclass(frozen=True, kw_only=True)
class SeedFields(TextFields):
    """What Seed-OSS's config.json says."""

    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 524288
    attention_bias: bool = True
    attention_out_bias: bool = False


def read_llama(content: Mapping[str, Any]) -> DenseConfig:
    """Read a Llama's config.json; raises ConfigError naming the field that is off."""
    return _checked(content, otherwise=FULL)


def read_mistral(content: Mapping[str, Any]) -> DenseConfig:
    """Read a Mistral's config.json; raises ConfigError naming the field that is off."""
    published = {"num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072}
    full = {**published, **content}
    return _checked(full, otherwise=FULL if full["sliding_window"] is None else SLIDING)


def read_exaone(content: Mapping[str, Any]) -> DenseConfig:
    """Read EXAONE 3's config.json; raises ConfigError naming the field that is off."""
    fields = read(ExaoneFields, content)
    fields.check()
    return DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers, default_theta=500000.0)


def read_internlm(content: Mapping[str, Any]) -> DenseConfig:
    """Read InternLM 3's config.json; raises ConfigError naming the field that is off."""
    fields = read(InternLMFields, content)
    fields.check()
    shape = AttentionShape.of(fields, out_bias=fields.mlp_bias)
    return DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers, shape)


def read_internlm2(content: Mapping[str, Any]) -> DenseConfig:
    """Read InternLM 2's config.json; raises ConfigError naming the field that is off."""
    fields = read(InternLM2Fields, content, {"attention_bias": "bias"})
    fields.check()
    return DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers)


def read_seed(content: Mapping[str, Any]) -> DenseConfig:
    """Read Seed-OSS's config.json; raises ConfigError naming the field that is off."""
    fields = read(SeedFields, content)
    fields.check()
    shape = AttentionShape.of(fields, out_bias=fields.attention_out_bias)
    return DenseConfig.of(fields, content, (FULL,) * fields.num_hidden_layers, shape)


def _checked(content: Mapping[str, Any], otherwise: str) -> DenseConfig:
    fields = read(TextFields, content)
    fields.check()
    every = None if fields.sliding_window is None else fields.sliding_window_pattern
    types = layer_types_of(fields.layer_types, fields.num_hidden_layers, otherwise, every)
    return DenseConfig.of(fields, content, types)


def build(config: DenseConfig) -> CausalLM:
    """Make the module; its parameters are not computed."""
    return build_dense(config)


def _architecture(
    name: str,
    reader: Callable[[Mapping[str, Any]], DenseConfig],
    class_names: tuple[str, ...],
    fields: type[TextFields] = TextFields,
    reference: str | None = None,
) -> Architecture:
    return Architecture(
        name=name,
        model_types=(name,),
        class_names=class_names,
        task="generate",
        verified=f"Transformers 5.24 {reference or class_names[0]}",
        by_request=("rerank",),
        read_config=reader,
        build=build,
        fields=fields,
        adapters=("lora", "dora"),
        sharding=DENSE,
    )


LLAMA = _architecture("llama", read_llama, ("LlamaForCausalLM",))
MISTRAL = _architecture("mistral", read_mistral, ("MistralForCausalLM",))
EXAONE = _architecture(
    "exaone",
    also_named(EXAONE_NAMES, read_exaone),
    ("ExaoneForCausalLM", "LlamaForCausalLM"),
    ExaoneFields,
    reference="LlamaForCausalLM",
)
INTERNLM3 = _architecture(
    "internlm3",
    also_named(INTERNLM_NAMES, read_internlm),
    ("InternLM3ForCausalLM", "LlamaForCausalLM"),
    InternLMFields,
    reference="LlamaForCausalLM",
)
INTERNLM2 = _architecture(
    "internlm2",
    read_internlm2,
    ("InternLM2ForCausalLM",),
    InternLM2Fields,
    reference="LlamaForCausalLM, its matrices rearranged",
)
SEED_OSS = _architecture("seed_oss", read_seed, ("SeedOssForCausalLM",), SeedFields)
HEADLESS = (
    embedder(LLAMA, "LlamaModel"),
    classifier(LLAMA, "LlamaForSequenceClassification"),
    embedder(MISTRAL, "MistralModel"),
    classifier(MISTRAL, "MistralForSequenceClassification"),
)


class Plugin:
    """Offers all of them, Llama and Mistral as embedders and classifiers too."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Llama, Mistral, EXAONE 3, InternLM 2 and 3, and Seed-OSS."""
        return (LLAMA, MISTRAL, EXAONE, INTERNLM2, INTERNLM3, SEED_OSS, *HEADLESS)


PLUGIN = Plugin()
