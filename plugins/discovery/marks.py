"""Marks: entry points whose names say which paths they are for, so that nothing is imported for any other path.

A name that begins with a dot is the end of a path's own name (`.wlz`); any other is that of a file, which the path
is or holds (`manifest.wlz`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

from weightloom.engine.errors import PluginError, WeightloomError
from weightloom.rules.installed import distribution_of, installed_points


def marked_point(group: str, path: Path) -> EntryPoint | None:
    """Give the entry point of a group whose mark a path bears; raises PluginError where two packages claim it."""
    marked = [point for point in installed_points(group) if _bears(path, point.name)]
    if len({point.value for point in marked}) > 1:
        raise PluginError(
            f"{path} is claimed by {len(marked)} packages: {', '.join(sorted(map(origin, marked)))}",
            expected=f"one entry point of {group} for a mark",
            hint="uninstall the other",
            file=path,
        )
    return marked[0] if marked else None


def _bears(path: Path, mark: str) -> bool:
    return path.name.endswith(mark) if mark.startswith(".") else path.name == mark or (path / mark).is_file()


def used(point: EntryPoint, path: Path, use: Callable[[object], object]) -> object:
    """Import what an entry point leads to and use it on a path; an error that is none of ours names the package."""
    try:
        return use(point.load())
    except WeightloomError:
        raise
    # A stranger's code may raise anything; what it was doing is what the user must hear.
    except Exception as error:
        raise PluginError(
            f"{origin(point)} cannot open {path}: {type(error).__name__}: {error}",
            expected="a package that opens what bears its mark",
            hint="update or report it",
            file=path,
        ) from error


def origin(point: EntryPoint) -> str:
    """Name an entry point and its distribution."""
    return f"{point.value} of {distribution_of(point)}"
