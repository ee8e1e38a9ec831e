"""The fields that configs of models with Mamba 2 beside attention share: sizes of the mixers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.text_fields import TextFields


@dataclass(frozen=True, kw_only=True)
class Mamba2Fields(TextFields):
    """What config.json says; a family's fields are a subclass, with its own defaults."""

    mamba_n_heads: int = 128
    mamba_n_groups: int = 1
    mamba_d_state: int = 256
    mamba_d_head: int | str = "auto"
    mamba_d_conv: int = 4
    mamba_expand: int = 2
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False
    time_step_limit: tuple[float, ...] | None = (0.0, inf)

    @property
    def channels(self) -> int:
        """How many inputs all heads of a mixer have."""
        return self.mamba_expand * self.hidden_size

    @property
    def out_bias(self) -> bool:
        """Whether the projection out of a mixer has a bias."""
        return self.mamba_proj_bias

    def check_mixers(self) -> None:
        """Raise ConfigError, naming the field, for sizes that are no positive numbers or do not fit together."""
        sizes = ("mamba_n_heads", "mamba_n_groups", "mamba_d_state", "mamba_d_conv", "mamba_expand")
        refuse_non_positive({name: getattr(self, name) for name in sizes})
        heads, groups, given = self.mamba_n_heads, self.mamba_n_groups, self.mamba_d_head
        fits = self.channels > 0 and self.channels % heads == 0
        refuse_unless(fits, "mamba_n_heads", heads, f"a divisor of {self.channels}, the inputs of all heads")
        size = self.channels // heads
        refuse_unless(given in ("auto", size), "mamba_d_head", given, f'"auto", or the inputs over the heads, {size}')
        refuse_unless(heads % groups == 0, "mamba_n_groups", groups, f"a divisor of mamba_n_heads, {heads}")
