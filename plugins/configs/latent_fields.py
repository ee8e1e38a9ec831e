"""The fields that configs of latent attention share: the ranks of what is projected down, and the parts of a head."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.text_fields import TextFields


@dataclass(frozen=True, kw_only=True)
class LatentFields(TextFields):
    """What config.json says of a text model with latent attention; a family's fields are a subclass.

    `head_dim` is not asked for: it follows from the parts.
    """

    kv_lora_rank: int = 512
    q_lora_rank: int | None = 1536
    qk_nope_head_dim: int = 128
    qk_rope_head_dim: int = 64
    v_head_dim: int = 128

    def check_parts(self) -> None:
        """Raise ConfigError, naming the field, for a size that is no positive number."""
        names = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        refuse_non_positive({name: getattr(self, name) for name in names})
        turned = self.qk_rope_head_dim
        refuse_unless(turned % 2 == 0, "qk_rope_head_dim", turned, "an even number of dims to turn")
        if self.q_lora_rank is not None:
            refuse_non_positive({"q_lora_rank": self.q_lora_rank})

    @property
    def head_size(self) -> int:
        """The size of a head of queries and keys: the part that turns not, and the part that turns."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim
