"""Sample: a tiny config of an architecture, where its checkpoint comes from, and how its answers are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# Writes config.json and weights (float32) into a directory that is there and empty.
Writer = Callable[[Path], object]
# From the checkpoint's directory and tokens (2, any length) to logits, hidden states or scores, as float32.
Reference = Callable[[Path, Array], Array]
# From the content of config.json to the same said in other words.
Spelling = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Sample:
    """A config, as config.json has it, with sizes so small that a forward pass takes no time.

    Its checkpoint is generated: random parameters with the standard deviation `spread`, written by the rules run
    backwards in `layout`. `checkpoint` writes one in its place: what a reference saves, or a copy of files that are
    there; then the config.json that it wrote counts, and `layout` says which one that is.

    `reference`, where there is an independent implementation, reads a checkpoint (float32) and answers for tokens
    (2, up to `length`) int32; the kit asks for the same to `tolerance * max(1, max |reference|)`. `spellings` are other
    forms of the config that say the same, as older tools wrote it. `quantized_in` is the layout in which quantized
    checkpoints of the family are published. `published` are names that tensors of a generated checkpoint must have.
    Wrong values of the fields in `unread` are nobody's concern.
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
    checkpoint: Writer | None = None
    spellings: tuple[Spelling, ...] = ()

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    @property
    def model_type(self) -> str:
        """The model type that its config names."""
        return str(self.config["model_type"])

    def tokens(self) -> Array:
        """Give two rows of token ids (2, length), the same every time."""
        rng = np.random.default_rng(7)
        return rng.integers(1, int(self.config["vocab_size"]), (2, self.length)).astype(np.int32)
