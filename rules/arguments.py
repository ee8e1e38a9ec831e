"""Check an op's arguments against its constructor's annotations, before it is made.

A wrong type would otherwise come up as a TypeError in the middle of a plan. An annotation that this file does
not know is taken as it is: the op checks it itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_SIMPLE: dict[object, tuple[type, ...]] = {
    int: (int,),
    float: (int, float),
    str: (str,),
    NoneType: (NoneType,),
}
_LISTS = (tuple, list, Sequence, Iterable)


def parameters(maker: Callable[..., object]) -> dict[str, Any]:
    """Give the arguments that a constructor takes, each with its annotation (Any where there is none)."""
    hints = _hints(maker)
    return {name: hints.get(name, Any) for name in inspect.signature(maker).parameters}


def _hints(maker: Callable[..., object]) -> dict[str, Any]:
    try:
        return get_type_hints(maker.__init__ if inspect.isclass(maker) else maker)
    except (NameError, TypeError, AttributeError):
        return {}


def fits(value: object, hint: Any) -> bool:
    """Say whether a value read from YAML is of an annotated type."""
    origin = get_origin(hint)
    if hint is bool or isinstance(value, bool):
        return _may_be_bool(hint) and isinstance(value, bool)
    if hint in _SIMPLE:
        return isinstance(value, _SIMPLE[hint])
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin in _LISTS:
        return isinstance(value, tuple) and _items_fit(value, get_args(hint))
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(fits(v, get_args(hint)[1]) for v in value.values())
    return True


def _may_be_bool(hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_may_be_bool(option) for option in get_args(hint))
    return hint is bool or (hint not in _SIMPLE and get_origin(hint) is None)


def _items_fit(value: tuple[object, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 1 or (len(hints) == 2 and hints[1] is Ellipsis):
        return all(fits(item, hints[0]) for item in value)
    return len(value) == len(hints) and all(map(fits, value, hints))


def wording(hint: Any) -> str:
    """Say what an annotation wants, in a few words."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is NoneType:
        return "null"
    if hint in _SIMPLE or hint is bool:
        return {int: "a whole number", float: "a number", str: "text", bool: "true or false"}[hint]
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(wording(option) for option in inner))
    if origin is Literal:
        return " or ".join(repr(option) for option in inner)
    if origin in _LISTS:
        return "a list"
    return "a mapping" if origin in (dict, Mapping) else str(hint)
