"""The fields that configs of BERT and of its kin share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weightloom.plugins.configs.checks import refuse_non_positive
from weightloom.plugins.configs.config import refuse_unless


@dataclass(frozen=True, kw_only=True)
class BertFields:
    """What config.json says, as far as a forward pass needs it; defaults are the published ones."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: bool = False

    def check(self) -> None:
        """Raise ConfigError, naming the field, for what no encoder can be made of."""
        sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size", "max_position_embeddings")
        refuse_non_positive({name: getattr(self, name) for name in (*sizes, "type_vocab_size", "layer_norm_eps")})
        heads = self.num_attention_heads
        fine = heads > 0 and self.hidden_size % heads == 0
        refuse_unless(fine, "num_attention_heads", heads, f"a divisor of hidden_size {self.hidden_size}")
        refuse_unless(not self.is_decoder, "is_decoder", True, "false: an encoder, whose tokens see all others")
