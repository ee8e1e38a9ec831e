"""Sample: a tiny config of an architecture, and how its answers are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# From the checkpoint's directory and tokens (2, length) to logits, hidden states or scores, as float32.
Reference = Callable[[Path, Array], Array]


@dataclass(frozen=True)
class Sample:
    """A config, as config.json has it, with sizes so small that a forward pass takes no time.

    `reference`, where there is an independent implementation, reads the written checkpoint (float32) and answers
    for tokens (2, `length`) int32; the kit asks for the same to `tolerance * max(1, max |reference|)`. `layout` is
    the one that the checkpoint is written in. `quantized_in` is the layout in which quantized checkpoints of the
    family are published. `published` are names that tensors of such a checkpoint have: the rules are run backwards to
    write it, and these must come out. `spread` is the standard deviation of the random weights.
    """

    name: str
    config: Mapping[str, Any]
    reference: Reference | None = None
    length: int = 24
    tolerance: float = 1e-4
    layout: str = "hf"
    quantized_in: str = "mlx"
    spread: float = 1 / 3
    published: tuple[str, ...] = ()
    unread: tuple[str, ...] = field(default=("model_type", "architectures"))

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    @property
    def model_type(self) -> str:
        """The model type that its config names."""
        return str(self.config["model_type"])

    def tokens(self) -> Array:
        """Give two rows of token ids (2, length), the same every time."""
        rng = np.random.default_rng(7)
        return rng.integers(1, int(self.config["vocab_size"]), (2, self.length)).astype(np.int32)
