"""A module that is tied to a quantized one is quantized as it is, though the file has no tensors of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from weightloom.engine import Plan, Tie
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.runtime.preparing.quantized_set import QuantizedSet


def with_tied(found: QuantizedSet, names: Collection[str], target: Plan) -> QuantizedSet:
    """Add the modules whose parameters, of these names, are tied to those of quantized ones.

    So the file's end stands for the model's where the model has no other. `target` is the plan that any name fits: what
    it has of a tied module decides, and its rules are those that hold.
    """
    rules = target.resolver.rules if target.resolver is not None else ()
    ties = [rule for rule in rules if isinstance(rule, Tie)]
    alone = dict(_alone(found, frozenset(names), ties))
    here = {alone.get(path, path): how for path, how in found.modules.items()}
    return replace(found, modules={**dict(_tied(here, names, target, ties)), **here})


def _tied(
    modules: Mapping[str, Quantization], names: Collection[str], target: Plan, ties: Sequence[Tie]
) -> Iterator[tuple[str, Quantization]]:
    for rule in ties:
        for name in names:
            other = None if name in target.params else rule.other_end(name)
            how = None if other is None else modules.get(_path(other))
            if how is not None:
                yield _path(name), how


def _alone(found: QuantizedSet, names: Collection[str], ties: Sequence[Tie]) -> Iterator[tuple[str, str]]:
    """Give (module of the file, module of the model) where the model has the other end of a tie alone."""
    for rule in ties:
        for path in found.modules:
            name = f"{path}.weight"
            other = None if name in names else rule.other_end(name)
            if other is not None and other in names and _path(other) not in found.modules:
                yield path, _path(other)


def _path(name: str) -> str:
    return name.rpartition(".")[0]
