"""The lookup: a depth-first walk of the model tree finds the rules of each sub-model.

The tree is a list of nodes in pre-order, the root first with path "". The walk knows no framework. Its rules:
an identifier (class name, model type) that an ancestor already used is skipped, for the ancestor's rules cover
the whole subtree; siblings each keep their own; the class name is asked first, then the model type; a hit by
class name does not mark the model type as used, so that sub-models of that type are still reached. A class from
outside (`native` false) inherits nothing unless rules were registered for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.rule import Rule, Scope
from weightloom.engine.mapping.ruleset import RuleSet

Lookup = Callable[[str], RuleSet | None]

LEGACY = "legacy"


@runtime_checkable
class Registered(Protocol):
    """A lookup that can tell rules that were registered on purpose from those that ship."""

    def registered(self, identifier: str) -> RuleSet | None:
        """Give the rules that were registered for an identifier, or None."""
        ...


@dataclass(frozen=True, slots=True)
class ModuleNode:
    """One sub-model in the tree; `path` is its module path, "" for the root."""

    path: str
    class_name: str
    model_type: str | None = None
    native: bool = True


def scoped_rules(nodes: Iterable[ModuleNode], lookup: Lookup, base_model_prefix: str = "") -> RuleSet:
    """Collect the rules of a model, in the order in which they act, each with its scope; legacy names last.

    Raises RuleError when the first node is not the root.
    """
    found: list[Rule] = []
    used: dict[str, list[str]] = {}
    for position, node in enumerate(nodes):
        if (position == 0) != (node.path == ""):
            raise RuleError(
                f"node {position} has the path {node.path!r}",
                expected='nodes in depth-first order, the root first with path ""',
                field="path",
            )
        hit = _own_rules(node, lookup, used)
        if hit is None:
            continue
        rules, by_class = hit
        scope = None if node.path == "" else Scope(_below_base(node.path, base_model_prefix), base_model_prefix)
        found += [rule.replace(scope=scope) for rule in rules] if scope else rules
        used.setdefault(node.class_name, []).append(node.path)
        if node.model_type and not by_class:
            used.setdefault(node.model_type, []).append(node.path)
    legacy = lookup(LEGACY)
    return RuleSet((*found, *(legacy or ())), base_model_prefix)


def _own_rules(node: ModuleNode, lookup: Lookup, used: dict[str, list[str]]) -> tuple[Sequence[Rule], bool] | None:
    """Give (rules, found by class name), or None where there are none or an ancestor has them already."""
    ask = lookup if node.native else _registered_only(lookup)
    if node.class_name and _covered(node.path, used.get(node.class_name, ())):
        return None
    rules = ask(node.class_name) if node.class_name else None
    if rules is not None:
        return rules, True
    if not node.model_type or _covered(node.path, used.get(node.model_type, ())):
        return None
    rules = ask(node.model_type)
    return None if rules is None else (rules, False)


def _registered_only(lookup: Lookup) -> Lookup:
    return lookup.registered if isinstance(lookup, Registered) else lambda _: None


def _covered(path: str, ancestors: Iterable[str]) -> bool:
    return any(above == "" or path.startswith(above + ".") for above in ancestors)


def _below_base(path: str, base: str) -> str:
    """Take the base model's prefix off a module path."""
    if base and (path == base or path.startswith(base + ".")):
        return path[len(base) + 1 :]
    return path
