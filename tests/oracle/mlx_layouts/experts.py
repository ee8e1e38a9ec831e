"""Families with experts or latent attention."""

from __future__ import annotations

from tests.oracle.mlx_layouts.family import Family

EXPERTS = (Family("mixtral"),)
