"""The labels of a classifier, as a config names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from weightloom.engine.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

C = TypeVar("C", bound="DataclassInstance")

# A config that is silent has two.
_DEFAULT = 2
# More than any classifier has, and few enough to name.
_MOST = 2**20


def label_names(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the labels in the order of the scores: by `id2label`, else as many as `num_labels` says, else two.

    Raises ConfigError for ids that do not count from 0, and for two fields that disagree.
    """
    count, named = content.get("num_labels"), content.get("id2label")
    if count is not None and not (isinstance(count, int) and not isinstance(count, bool) and 0 < count <= _MOST):
        raise _wrong("num_labels", count, f"a number of labels, {_MOST} at most")
    if named is None:
        return tuple(f"LABEL_{number}" for number in range(count or _DEFAULT))
    wanted = {str(number) for number in range(len(named))} if isinstance(named, Mapping) else set()
    if not wanted or {str(key) for key in named} != wanted or not all(isinstance(each, str) for each in named.values()):
        raise _wrong("id2label", named, "labels by their ids, from 0")
    if count is not None and count != len(named):
        raise _wrong("num_labels", count, f"{len(named)}, as id2label has")
    return tuple(named[key] for key in sorted(named, key=int))


def with_labels(reader: Callable[[Mapping[str, Any]], C], **changes: Any) -> Callable[[Mapping[str, Any]], C]:
    """Give what reads a classifier's config.json: as its encoder's `reader` does, with `labels`, and `changes`."""
    return lambda content: replace(reader(content), labels=label_names(content), **changes)


def _wrong(field: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"{field} is {value!r}", expected=expected, hint="correct config.json", field=field)
