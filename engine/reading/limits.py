"""Limits: how much scratch reading may take, and what is worth a read of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits counted in units of a tensor: see Limits. `scratch` is at least one."""

    scratch: int
    gap: int
    run: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in bytes.

    `scratch`: the most scratch one gather takes. `gap`: runs that lie less than this apart are read in one
    go, the bytes between thrown away. `run`: what is contiguous on both sides and this long is read straight
    into its place.
    """

    scratch: int = 8 << 20
    gap: int = 64 << 10
    run: int = 32 << 10

    def budget(self, width: int) -> Budget:
        """Give the limits in units of `width` bytes."""
        return Budget(max(1, self.scratch // width), -(-self.gap // width), -(-self.run // width))
