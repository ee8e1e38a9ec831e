"""The fields that configs of models of Mamba's mixers alone share, of either kind."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.plugins.configs.checks import refuse_non_positive


@dataclass(frozen=True, kw_only=True)
class MambaFields:
    """What config.json says; a family's fields are a subclass, with its own defaults."""

    vocab_size: int
    hidden_size: int
    state_size: int
    num_hidden_layers: int
    layer_norm_epsilon: float = 1e-5
    expand: int = 2
    conv_kernel: int = 4
    use_bias: bool = False
    use_conv_bias: bool = True
    hidden_act: str = "silu"
    residual_in_fp32: bool = True
    tie_word_embeddings: bool = True

    def check(self, *more: str) -> None:
        """Raise ConfigError, naming the field, for a size that is no positive number; `more` are further fields."""
        sizes = ("vocab_size", "hidden_size", "state_size", "num_hidden_layers", "layer_norm_epsilon", "conv_kernel")
        refuse_non_positive({name: getattr(self, name) for name in (*sizes, *more)})
