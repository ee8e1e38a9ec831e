"""Families with states, convolutions, towers, or norms of another scale."""

from __future__ import annotations

from tests.oracle.mlx_layouts.family import Family

HYBRID: tuple[Family, ...] = ()
