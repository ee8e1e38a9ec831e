"""A module that is tied to a quantized one is quantized as it is, though the file has no tensors of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from weightloom.engine import Plan, Tie
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.runtime.preparing.quantized_set import QuantizedSet


def with_tied(found: QuantizedSet, names: Collection[str], target: Plan) -> QuantizedSet:
    """Add the modules whose parameters, of these names, are tied to those of quantized ones.

    `target` is the plan that any name fits: what it has of a tied module decides, and its rules are those that hold.
    """
    return replace(found, modules={**dict(_tied(found, names, target)), **found.modules})


def _tied(found: QuantizedSet, names: Collection[str], target: Plan) -> Iterator[tuple[str, Quantization]]:
    rules = target.resolver.rules if target.resolver is not None else ()
    for rule in (rule for rule in rules if isinstance(rule, Tie)):
        for name in names:
            other = None if name in target.params else rule.other_end(name)
            how = None if other is None else found.modules.get(_path(other))
            if how is not None:
                yield _path(name), how


def _path(name: str) -> str:
    return name.rpartition(".")[0]
