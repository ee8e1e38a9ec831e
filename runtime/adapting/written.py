"""What is written of an adapter: arrays by name, and its adapter_config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weightloom.engine.errors import PlanError

if TYPE_CHECKING:
    import mlx.core as mx


@dataclass(frozen=True, eq=False)
class Written:
    """The file of weights by name, its tensors, the config, and what is to know."""

    file: str
    arrays: Mapping[str, mx.array]
    config: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def config_bytes(self) -> bytes:
        """The config as JSON text."""
        return (json.dumps(self.config, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


@dataclass(frozen=True, slots=True)
class About:
    """What a config says of the base: its path or name, its task, and how many layers it has (0: not known)."""

    base: str | None
    task: str | None
    layers: int


def no_place(name: str, form: str, what: str, expected: str) -> PlanError:
    """Give the error for a tensor that a format has no place for."""
    return PlanError(
        f"{name} is {what}, which the {form} format has no place for",
        expected=expected,
        hint="write it in the format that it was read in, or fuse it into the base",
        tensor=name,
    )
