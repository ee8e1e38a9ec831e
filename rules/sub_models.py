"""A model's tree from its config, where no architecture is at hand: the `tree` of its rule file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weightloom.engine.scope import ModuleNode
from weightloom.rules.document import SubModel


def module_nodes(
    class_name: str, model_type: str | None, tree: Iterable[SubModel], config: Mapping[str, Any]
) -> tuple[ModuleNode, ...]:
    """Give the root and its sub-models in the order of a walk, for `scoped_rules`.

    A sub-model's model type is the one that its sub-config names ("" and None count as none).
    """
    below = sorted(tree, key=lambda each: each.path.split("."))
    nodes = (ModuleNode(each.path, each.class_name or "", _model_type(each, config)) for each in below)
    return (ModuleNode("", class_name, model_type), *nodes)


def _model_type(each: SubModel, config: Mapping[str, Any]) -> str | None:
    if each.config is None:
        return None
    value: Any = config
    for key in each.config.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    found = value.get("model_type") if isinstance(value, Mapping) else None
    return found if isinstance(found, str) and found else None
