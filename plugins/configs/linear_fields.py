"""The fields of hybrids of full and linear attention: the sizes of the latter, and which layers have which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weightloom.plugins.configs.checks import FULL, layer_types_of, refuse_non_positive
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.text_fields import TextFields

LINEAR = "linear_attention"
SIZES = (
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
)


@dataclass(frozen=True, kw_only=True)
class LinearFields(TextFields):
    """What config.json says; a family's fields are a subclass, with its own defaults."""

    linear_conv_kernel_dim: int = 4
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    linear_num_key_heads: int = 16
    linear_num_value_heads: int = 32
    full_attention_interval: int = 4

    def types(self) -> tuple[str, ...]:
        """Give each layer's type: as listed, else full attention in each `full_attention_interval`th layer."""
        refuse_non_positive({"full_attention_interval": self.full_attention_interval})
        count, every = self.num_hidden_layers, self.full_attention_interval
        otherwise = tuple(LINEAR if layer % every else FULL for layer in range(1, count + 1))
        listed = otherwise if self.layer_types is None else self.layer_types
        return layer_types_of(listed, count, FULL, known=(FULL, LINEAR))

    def check_linear(self) -> None:
        """Raise ConfigError, naming the field, for sizes of linear attention that are impossible."""
        refuse_linear_sizes({name: getattr(self, name) for name in SIZES})


def refuse_linear_sizes(sizes: Mapping[str, int], called: Mapping[str, str] | None = None) -> None:
    """Raise ConfigError for the first of these sizes, `SIZES` by name, that linear attention cannot have.

    `called` is what a family's configs call those that have another name there.
    """
    names = called or {}
    refuse_non_positive({names.get(name, name): size for name, size in sizes.items()})
    keys, values = sizes["linear_num_key_heads"], sizes["linear_num_value_heads"]
    refuse_unless(values % keys == 0, "linear_num_value_heads", values, f"a multiple of linear_num_key_heads, {keys}")
