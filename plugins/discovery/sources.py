"""Sources: checkpoints in a container of their own, opened by the package that knows it before other forms are tried.

Entry-point group `weightloom.sources`. An entry point's name is the mark of such a container (see `marks`), its value
`module:OBJECT`, an object with `open`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from weightloom.engine import Checkpoint
from weightloom.engine.errors import PluginError
from weightloom.plugins.discovery.marks import marked_point, origin, used

GROUP = "weightloom.sources"


@dataclass(frozen=True)
class Bundle:
    """What a container holds: the checkpoint, config.json's text, and what else a save elsewhere carries along.

    `Checkpoint.from_files`, `from_arrays` and `from_shards` make checkpoints of all kinds; one that is made of arrays
    has no bytes of its own on disk, and is saved under its tensors' names.
    """

    checkpoint: Checkpoint
    config: bytes | None = None
    side_files: Mapping[str, bytes | Path] = field(default_factory=dict)

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


class Source(Protocol):
    """What an entry point of the group leads to."""

    def open(self, path: Path) -> Bundle:
        """Open a container that bears the mark."""
        ...


def open_bundle(path: Path) -> Bundle | None:
    """Open a container by the source whose mark it bears; None where it bears none.

    Raises PluginError where two packages claim the mark, or the one that does cannot be used or fails otherwise than
    by an error of ours, which is raised as it is.
    """
    point = marked_point(GROUP, path)
    if point is None:
        return None
    found = used(point, path, lambda source: cast("Source", source).open(path))
    if not isinstance(found, Bundle):
        raise PluginError(f"{origin(point)} gives {type(found).__name__}", expected="a Bundle", file=path)
    return found
