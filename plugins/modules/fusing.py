"""Fusing: products on one input computed as one, and steps for one token compiled, once parameters are there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import mlx.nn as nn


@runtime_checkable
class Fusable(Protocol):
    """A module that can compute several of its products as one."""

    def fuse(self) -> bool:
        """Do so from now on; say whether it could."""
        ...


@runtime_checkable
class Compilable(Protocol):
    """A module that can compile what it does for one token."""

    def compile_steps(self) -> bool:
        """Do so from now on; say whether it could."""
        ...


def compile_steps(module: nn.Module) -> tuple[str, ...]:
    """Have all that can be compiled for single tokens, and give the paths of the modules that are."""
    named = module.named_modules()
    return tuple(sorted(path for path, each in named if isinstance(each, Compilable) and each.compile_steps()))


def fuse(module: nn.Module, apart: Iterable[str] = ()) -> tuple[str, ...]:
    """Fuse all that can be, but what is below the paths `apart`; give the paths of the modules that were.

    Each needs its own size in memory once more while it is fused.
    """
    left = tuple(f"{path}." for path in apart)
    found = ((path, each) for path, each in module.named_modules() if not f"{path}.".startswith(left or ("\0",)))
    return tuple(sorted(path for path, each in found if isinstance(each, Fusable) and each.fuse()))
