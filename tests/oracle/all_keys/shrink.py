"""A config of any class, shrunk so that its model is built in a moment. No forward pass is ever run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tests.oracle.all_keys.sizes import LAYERS, small, small_list

Changes = Mapping[str, Any]

# Not sizes, or worked out anew by the config itself.
_SKIPPED = {
    *("transformers_version", "architectures", "dtype", "id2label", "label2id", "name_or_path", "problem_type"),
    *("output_hidden_states", "return_dict", "is_encoder_decoder", "layer_types"),
}


def tiny_config(config_class: type[Any], changes: Changes) -> Any:
    """Make a config with every size cut down and these fields on top; a dict for a sub-config goes into it."""
    return config_class(**_arguments(config_class(), changes))


def _arguments(base: Any, changes: Changes) -> dict[str, Any]:
    from transformers import PreTrainedConfig

    found: dict[str, Any] = {}
    used = set()
    for name in _fields(base):
        value = _value(base, name)
        change = changes.get(name)
        if isinstance(value, PreTrainedConfig):
            used.add(name)
            found[name] = _sub_config(value, change if name in changes else {})
        elif name not in changes:
            found |= _shrunk(base, name, value)
    return found | {name: change for name, change in changes.items() if name not in used}


def _value(base: Any, name: str) -> Any:
    try:
        return getattr(base, name)
    except Exception:  # some fields have a value for each layer, and none of their own
        return None


def _sub_config(value: Any, change: Any) -> Any:
    if not isinstance(change, Mapping):
        return change
    named = {"model_type": type(value).model_type} if type(value).model_type else {}
    return named | _arguments(value, change)


def _fields(base: Any) -> list[str]:
    names = [field.name for field in dataclasses.fields(base)] if dataclasses.is_dataclass(base) else list(vars(base))
    return [name for name in names if not name.startswith("_") and name not in _SKIPPED]


def _shrunk(base: Any, name: str, value: Any) -> dict[str, Any]:
    """Give the smaller value by name; nothing for a field that stays, or that the config works out itself."""
    if value is None or _default(base, name) is None:
        return {}
    if isinstance(value, int) and not isinstance(value, bool):
        return {name: small(name, value)}
    if not isinstance(value, list | tuple) or not value:
        return {}
    if len(value) == getattr(base, "num_hidden_layers", None) and not isinstance(value[0], dict):
        return {name: type(value)(value[:LAYERS])}
    numbers = all(isinstance(each, int) and not isinstance(each, bool) for each in value)
    return {name: type(value)(small_list(name, list(value)) if numbers else value)}


def _default(base: Any, name: str) -> Any:
    """What the class itself says; a field without one of its own counts as set."""
    fields = {field.name: field for field in dataclasses.fields(base)} if dataclasses.is_dataclass(base) else {}
    field = fields.get(name)
    if field is None:
        return True
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else None
