"""Mamba (arXiv 2312.00752) and Falcon Mamba (arXiv 2410.05355): selective scans in place of attention.

Falcon Mamba norms, without weights, what step sizes come from and what is let in and out. Parameters are named as
Transformers 5 names those of MambaForCausalLM and FalconMambaForCausalLM. Transformers starts a part of a prompt that
is longer than a token without the state of the parts before; here it goes on from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from weightloom.plugins.architecture import Architecture
from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import read
from weightloom.plugins.configs.mamba_fields import MambaFields
from weightloom.plugins.layers.activations import activation
from weightloom.plugins.layers.decoder import CausalLM
from weightloom.plugins.layers.mamba import MambaMixer, MambaShape, rank_of
from weightloom.plugins.layers.mamba_decoder import SHARDING, build_mamba
from weightloom.plugins.layers.norms import UnweightedNorm
from weightloom.plugins.specs import hookimpl


@dataclass(frozen=True, kw_only=True)
class Fields(MambaFields):
    """What config.json says; defaults are the published ones."""

    vocab_size: int = 50280
    hidden_size: int = 768
    state_size: int = 16
    num_hidden_layers: int = 32
    intermediate_size: int | None = None
    time_step_rank: int | str = "auto"
    mixer_rms_eps: float = 1e-6

    @property
    def channels(self) -> int:
        """How many channels a mixer has; Falcon Mamba's `expand` is another number than what it says."""
        return self.expand * self.hidden_size if self.intermediate_size is None else self.intermediate_size


@dataclass(frozen=True)
class Config:
    """A config that fits together; `normed_eps` is that of norms within a mixer, None where it has none."""

    fields: Fields
    shape: MambaShape
    normed_eps: float | None


def read_mamba(content: Mapping[str, Any]) -> Config:
    """Read a Mamba's config.json; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    return Config(fields, _shape(fields), None)


def read_falcon_mamba(content: Mapping[str, Any]) -> Config:
    """Read a Falcon Mamba's config.json; raises ConfigError naming the field that is off."""
    fields = read(Fields, content)
    refuse_non_positive({"mixer_rms_eps": fields.mixer_rms_eps})
    return Config(fields, _shape(fields), fields.mixer_rms_eps)


def _shape(fields: Fields) -> MambaShape:
    fields.check()
    given = "expand" if fields.intermediate_size is None else "intermediate_size"
    refuse_non_positive({given: getattr(fields, given)})
    return MambaShape(
        fields.hidden_size,
        fields.channels,
        fields.state_size,
        rank_of(fields.time_step_rank, fields.hidden_size, "time_step_rank"),
        fields.conv_kernel,
        activation(fields.hidden_act),
        fields.use_conv_bias,
        fields.use_bias,
    )


class NormedMixer(MambaMixer):
    """A mixer with norms that have no parameters."""

    def __init__(self, shape: MambaShape, eps: float) -> None:
        super().__init__(shape)
        self._norm = UnweightedNorm(eps)

    def normed(self, dt: mx.array, b: mx.array, c: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """Norm each, (B, L, size)."""
        return self._norm(dt), self._norm(b), self._norm(c)


def build(config: Config) -> CausalLM:
    """Make the module; its parameters are not computed."""
    shape, eps = config.shape, config.normed_eps
    return build_mamba(config.fields, lambda: MambaMixer(shape) if eps is None else NormedMixer(shape, eps))


MAMBA = Architecture(
    name="mamba",
    model_types=("mamba",),
    class_names=("MambaForCausalLM",),
    base_model_prefix="backbone",
    task="generate",
    verified="Transformers 5.24 MambaForCausalLM",
    by_request=("rerank",),
    read_config=read_mamba,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)
FALCON_MAMBA = Architecture(
    name="falcon_mamba",
    model_types=("falcon_mamba",),
    class_names=("FalconMambaForCausalLM",),
    base_model_prefix="backbone",
    task="generate",
    verified="Transformers 5.24 FalconMambaForCausalLM",
    by_request=("rerank",),
    read_config=read_falcon_mamba,
    build=build,
    fields=Fields,
    adapters=("lora", "dora"),
    sharding=SHARDING,
)


class Plugin:
    """Offers both."""

    @hookimpl
    def weightloom_architectures(self) -> tuple[Architecture, ...]:
        """Offer Mamba and Falcon Mamba."""
        return (MAMBA, FALCON_MAMBA)


PLUGIN = Plugin()
