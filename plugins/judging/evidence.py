"""What a checkpoint shows of itself before a tensor is read, for the architectures of its model type to judge."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.plugins.judging.kind import UNKNOWN, Kind, asked_kind, kind_of
from weightloom.plugins.judging.steps import Steps
from weightloom.plugins.judging.vision import UNSAID, Vision, vision_of


@dataclass(frozen=True)
class Evidence:
    """config.json's content, the names of the tensors as they are in the files, and what follows from both.

    `vision` says whether there is a vision tower, `kind` what the checkpoint is for, `class_name` is the first of
    `architectures`, `steps` are those that sentence-transformers' files put after the model; None where there is none.
    """

    config: Mapping[str, Any]
    names: Collection[str]
    vision: Vision
    kind: Kind = UNKNOWN
    class_name: str | None = None
    steps: Steps | None = None

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    def asking(self, task: str) -> Evidence:
        """Give the same evidence where a task is asked for; one that was asked for before stays."""
        if self.kind.force == "asked":
            return self
        return replace(self, kind=asked_kind(task))


NOTHING_SEEN = Evidence({}, (), UNSAID)


def evidence_of(
    config: Mapping[str, Any],
    names: Collection[str],
    steps: Steps | None = None,
    asked: str | None = None,
    file: str | None = None,
) -> Evidence:
    """Gather the evidence; `asked` is the task that the caller wants, `file` the config's place, for the facts.

    Raises ConfigError as `vision_of` and `kind_of` do, and for `architectures` that is no list of names.
    """
    class_name = _class_name(config, file)
    kind = kind_of(config, names, class_name, steps, asked, file)
    return Evidence(config, names, vision_of(config, names, file), kind, class_name, steps)


def _class_name(config: Mapping[str, Any], file: str | None) -> str | None:
    found = config.get("architectures")
    if found is None or found == []:
        return None
    if not (isinstance(found, list) and all(isinstance(name, str) and name for name in found)):
        raise ConfigError(
            f"architectures is {found!r}", expected="a list of class names", file=file, field="architectures"
        )
    return str(found[0])
