"""Families of plain decoders."""

from __future__ import annotations

from tests.oracle.mlx_layouts.family import Family

DENSE = (Family("llama"),)
