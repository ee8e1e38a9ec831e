"""What a conversion is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.runtime.adapting.losses import AS_DENSE, LossPolicy

if TYPE_CHECKING:
    from weightloom.runtime.adapting.wish import Weighted
    from weightloom.runtime.quantizing.wish import Quantizing
    from weightloom.runtime.surgery.surgery_file import SurgeryFile

ORIGINAL = "original"
CANONICAL = "canonical"
DEFAULT_SHARD_BYTES = 5 * 10**9


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for: target directory, layout (ORIGINAL, CANONICAL or a name), and how it is written.

    `dtype` is a safetensors name (F32, F16, BF16) or None for as it is; `max_shard_bytes` None keeps the source's
    own files where nothing else changes, and cuts shards of 5 GB elsewhere. `adapters`, each with a scale, are fused
    into the parameters (`losses` says what is done with packed ones that lose too much), then `surgery` changes them:
    with either, ORIGINAL is the layout that is read, written anew. With `quantizing`, which comes last, it is mlx where
    the family has that layout. With `measured` what quantizing takes of each module is worked out first.
    """

    target: Path
    layout: str = ORIGINAL
    dtype: str | None = None
    max_shard_bytes: int | None = None
    overwrite: bool = False
    surgery: SurgeryFile | None = None
    adapters: tuple[Weighted, ...] = ()
    losses: LossPolicy = AS_DENSE
    quantizing: Quantizing | None = None
    measured: bool = False

    @property
    def packs(self) -> bool:
        """Whether modules are packed anew, by a recipe."""
        return self.quantizing is not None and self.quantizing.recipe is not None

    @property
    def as_is(self) -> bool:
        """Whether the tensors of the source are written as they are."""
        return self.layout == ORIGINAL and self.quantizing is None and self.surgery is None and not self.adapters
