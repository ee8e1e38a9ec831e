"""CacheSize: what the caches of one kind hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The caches of one kind: how many layers have one, the dtypes in them, as safetensors spells it, bytes of all."""

    kind: str
    layers: int
    dtypes: tuple[str, ...]
    nbytes: int
