"""What a checkpoint shows of itself before a tensor is read, for the architectures of its model type to judge."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.plugins.vision import Vision, vision_of


@dataclass(frozen=True)
class Evidence:
    """config.json's content, the names of the tensors as they are in the files, and whether there is a vision tower."""

    config: Mapping[str, Any]
    names: Collection[str]
    vision: Vision

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def evidence_of(config: Mapping[str, Any], names: Collection[str]) -> Evidence:
    """Gather the evidence; raises ConfigError as `vision_of` does."""
    return Evidence(config, names, vision_of(config, names))
