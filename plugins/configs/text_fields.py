"""The fields that most text models' configs share, with the defaults that most of them have; a family adds its own."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.plugins.configs.checks import head_dim_of, kv_heads_of, refuse_non_positive


@dataclass(frozen=True, kw_only=True)
class TextFields:
    """What config.json says. A family's fields are a subclass, with the defaults that its own configs have."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 2048
    attention_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    sliding_window_pattern: int | None = None
    layer_types: tuple[str, ...] | None = None

    def check(self, *more: str) -> None:
        """Raise ConfigError, naming the field, for a size that is no positive number; `more` are further fields."""
        sizes = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
        names = (*sizes, "rms_norm_eps", "max_position_embeddings", *more)
        refuse_non_positive({name: getattr(self, name) for name in names})

    @property
    def head_size(self) -> int:
        """The size of a head; raises ConfigError where none follows."""
        return head_dim_of(self.head_dim, self.hidden_size, self.num_attention_heads)

    @property
    def kv_heads(self) -> int:
        """How many heads of keys and values there are; raises ConfigError where they do not divide."""
        return kv_heads_of(self.num_key_value_heads, self.num_attention_heads)
