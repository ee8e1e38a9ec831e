"""The reference implementation's own mapping of a model type or class, as rules of this engine."""

from __future__ import annotations

from typing import Any

from weightloom.engine import (
    Chunk,
    Concatenate,
    ConversionOp,
    MergeModulelist,
    PrefixChange,
    Rule,
    RuleSet,
    WeightConverter,
    WeightRenaming,
)
from weightloom.engine.mapping.scope import LEGACY

_OPS: dict[str, type[Chunk | Concatenate | MergeModulelist]] = {
    "Chunk": Chunk,
    "Concatenate": Concatenate,
    "MergeModulelist": MergeModulelist,
}


def translated(identifier: str) -> RuleSet | None:
    """Give the mapping that is registered there under an identifier, or None; legacy names are not written back."""
    from transformers import conversion_mapping

    found: list[Any] | None = conversion_mapping.get_checkpoint_conversion_mapping(identifier)  # type: ignore[no-untyped-call]
    if found is None:
        return None
    rules = RuleSet(map(rule_of, found))
    return rules.replace_all(always=False) if identifier == LEGACY else rules


def rule_of(transform: Any) -> Rule:
    """One transform as a rule of the same kind, with the patterns as they were written."""
    kind = type(transform).__name__
    if kind == "PrefixChange":
        return PrefixChange(transform.prefix_to_add, transform.prefix_to_remove, transform.model_prefix or None)
    sources, targets = transform._original_source_patterns, transform._original_target_patterns
    if kind == "WeightConverter":
        return WeightConverter(sources, targets, [op_of(op) for op in transform.operations])
    assert kind == "WeightRenaming", kind
    return WeightRenaming(sources, targets)


def op_of(op: Any) -> ConversionOp:
    """One op; those that the cases need take a dim only."""
    return _OPS[type(op).__name__](op.dim)
