"""Which adapters are wished for: directories, each with a scale, checked before anything is opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightloom.engine.errors import UsageError
from weightloom.runtime.adapting.losses import AS_DENSE, LossPolicy
from weightloom.runtime.configs.finite import is_finite

Wished = str | os.PathLike[str] | Sequence[tuple[str | os.PathLike[str], float]]
"""A directory, whose adapter acts in full, or several, each with a scale."""
Weighted = tuple[Path, float]
"""The directory of an adapter, and its scale."""
_LARGEST = 3.4e38


@dataclass(frozen=True, slots=True)
class Fusing:
    """Adapters to be fused into the parameters of a model that is loaded: a directory, or several with a scale each."""

    adapters: Wished
    losses: LossPolicy = AS_DENSE


@dataclass(frozen=True, slots=True)
class AdapterWish:
    """Adapters that stay beside the parameters, and those that are fused into them, with what is done with losses."""

    beside: tuple[Weighted, ...] = ()
    fused: tuple[Weighted, ...] = ()
    losses: LossPolicy = AS_DENSE


def wished(adapter: object) -> AdapterWish:
    """Give directories and scales, none for None; raises UsageError as `weighted_directories` does."""
    if isinstance(adapter, Fusing):
        return AdapterWish(fused=weighted_directories(adapter.adapters), losses=adapter.losses)
    return AdapterWish() if adapter is None else AdapterWish(weighted_directories(adapter))


def weighted_directories(adapter: object) -> tuple[Weighted, ...]:
    """Give directories and scales.

    Raises UsageError for another form, and for a directory that is not there or twice.
    """
    one = isinstance(adapter, str | os.PathLike)
    pairs = [(adapter, 1.0)] if one else list(adapter) if isinstance(adapter, Sequence) else []
    if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise UsageError(
            f"adapter is {adapter!r}", expected="a directory, or pairs of a directory and a scale", field="adapter"
        )
    found = tuple(_pair(*pair) for pair in pairs)
    check_directories([path for path, _ in found])
    return found


def check_directories(paths: Sequence[Path]) -> None:
    """Raise UsageError, naming all, for directories that are not there, and for one that is named twice."""
    missing = [str(path) for path in paths if not path.is_dir()]
    if missing:
        raise UsageError(
            f"no directory {', '.join(missing)}", expected="directories of adapters", file=missing[0], field="adapter"
        )
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("an adapter was given twice", expected="each directory once", field="adapter")


def checked_scale(name: str, scale: object) -> float:
    """Give a scale as a float; raises UsageError for what is no number that float32 can hold."""
    if not is_finite(scale) or abs(scale) > _LARGEST:
        raise UsageError(f"the scale of {name} is {scale!r}", expected="a finite number", field="adapter")
    return float(scale)


def _pair(path: Any, scale: object) -> Weighted:
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"{path!r} is no path", expected="a directory of an adapter", field="adapter")
    return Path(path), checked_scale(str(path), scale)
