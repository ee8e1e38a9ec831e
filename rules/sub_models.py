"""A model's tree from its config, where no architecture is at hand: the `tree` of its rule file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weightloom.engine.mapping.scope import ModuleNode
from weightloom.rules.document import SubModel

# The `config` of a sub-model that has the whole model's own.
ITSELF = "."


def module_nodes(
    class_name: str,
    model_type: str | None,
    tree: Iterable[SubModel],
    config: Mapping[str, Any],
    class_of: Callable[[str], str | None] = lambda _: None,
) -> tuple[ModuleNode, ...]:
    """Give the root and its sub-models in the order of a walk, for `scoped_rules`.

    A sub-model's model type is the one that its sub-config names ("" and None count as none); where the tree
    names no class, `class_of` says which one that type makes.
    """
    below = sorted(tree, key=lambda each: each.path.split("."))
    return (ModuleNode("", class_name, model_type), *(_node(each, config, class_of) for each in below))


def _node(each: SubModel, config: Mapping[str, Any], class_of: Callable[[str], str | None]) -> ModuleNode:
    model_type = _model_type(each, config)
    made = None if model_type is None else class_of(model_type)
    return ModuleNode(each.path, each.class_name or made or "", model_type)


def _model_type(each: SubModel, config: Mapping[str, Any]) -> str | None:
    if each.config is None:
        return None
    value: Any = config
    for key in each.config.split(".") if each.config != ITSELF else ():
        value = value.get(key) if isinstance(value, Mapping) else None
    found = value.get("model_type") if isinstance(value, Mapping) else None
    return found if isinstance(found, str) and found else None
