"""What a config of BERT or of its kin comes to, and what the files say of its pooler."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from weightloom.plugins.configs.bert_fields import BertFields

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

F = TypeVar("F", bound=BertFields)
C = TypeVar("C", bound="DataclassInstance")


@dataclass(frozen=True)
class BertConfig(Generic[F]):
    """A config that fits together; whether there is a pooler is what the files say, `labels` what a classifier has."""

    fields: F
    labels: tuple[str, ...] = ()
    has_pooler: bool = True


def pooler_as_stored(config: C, names: Collection[str]) -> C:
    """Give a config with `has_pooler` by whether the checkpoint's names have one."""
    return replace(config, has_pooler=any(name.endswith("pooler.dense.weight") for name in names))
