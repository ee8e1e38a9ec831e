"""Sources: checkpoints in a container of their own, opened by the package that knows it before other forms are tried.

Entry-point group `weightloom.sources`. An entry point's name says what marks such a container, so that nothing is
imported for any other path: a suffix of a file (`.wlz`), or the name of a file in a directory (`manifest.wlz`).
Its value is `module:OBJECT`, an object with `open`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path

from weightloom.engine import Checkpoint
from weightloom.engine.errors import PluginError, WeightloomError
from weightloom.rules.installed import installed_points

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


def open_bundle(path: Path) -> Bundle | None:
    """Open a container by the source whose mark it bears; None where it bears none.

    Raises PluginError where two packages claim the mark, or the one that does cannot be used or fails otherwise than
    by an error of ours, which is raised as it is.
    """
    marked = [point for point in installed_points(GROUP) if _bears(path, point.name)]
    if not marked:
        return None
    if len({point.value for point in marked}) > 1:
        raise PluginError(
            f"{path} is claimed by {len(marked)} sources: {', '.join(sorted(map(_origin, marked)))}",
            expected="one source for a container",
            hint="uninstall the other",
            file=path,
        )
    return _opened(marked[0], path)


def _bears(path: Path, mark: str) -> bool:
    return path.name.endswith(mark) if mark.startswith(".") else (path / mark).is_file()


def _opened(point: EntryPoint, path: Path) -> Bundle:
    try:
        opening: Callable[[Path], object] = point.load().open
        found = opening(path)
    except WeightloomError:
        raise
    # A stranger's code may raise anything; what it was doing is what the user must hear.
    except Exception as error:
        raise PluginError(
            f"{_origin(point)} cannot open {path}: {type(error).__name__}: {error}",
            expected="a source that opens what bears its mark",
            hint="update or report it",
            file=path,
        ) from error
    if not isinstance(found, Bundle):
        raise PluginError(f"{_origin(point)} gives {type(found).__name__}", expected="a Bundle", file=path)
    return found


def _origin(point: EntryPoint) -> str:
    return f"{point.value} of {point.dist.name if point.dist else '?'}"
