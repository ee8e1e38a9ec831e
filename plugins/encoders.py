"""Architectures of encoders: a family's classifier is its encoder's architecture in all but what scores texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import mlx.nn as nn

from weightloom.engine import Drop, RuleSet
from weightloom.engine.mapping.rule import Rule
from weightloom.plugins.architecture import Architecture


def without_heads(*patterns: str) -> RuleSet:
    """Give the rule of an encoder that leaves out what other models of its family have beside it."""
    return RuleSet([Drop(list(patterns), why="a head, which an encoder does not use")])


def scoring(
    encoder: Architecture,
    class_names: tuple[str, ...],
    read_config: Callable[[Mapping[str, Any]], Any],
    build: Callable[[Any], nn.Module],
    rules: Iterable[Rule] = (),
) -> Architecture:
    """Give the architecture of an encoder's classifier, whose `rules` are in the place of the encoder's."""
    return replace(
        encoder,
        name=f"{encoder.name}_classifier",
        class_names=class_names,
        task="rerank",
        verified=f"Transformers 5.24 {', '.join(class_names)}",
        read_config=read_config,
        adapt=None,
        build=build,
        rules=RuleSet(rules),
    )
