"""Files that go beside the weights of a save as they are: a config, a tokenizer, a template."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from weightloom.engine.disk.files import Files
from weightloom.engine.disk.trees import copy_file
from weightloom.engine.errors import UsageError
from weightloom.engine.show import shown

SideFiles = Mapping[str, bytes | Path]
"""Name below the directory -> content, or a file to copy."""


def check_side_files(side_files: SideFiles, weights: Collection[str]) -> None:
    """Raise UsageError for a name that leaves the directory, is none, or is that of a weight file."""
    for name in side_files:
        path = PurePosixPath(name)
        if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
            raise _refusal(name, "a relative path that stays inside the directory")
        if str(path) in weights:
            raise _refusal(name, "another name: the save writes that file itself")


def write_side_files(folder: Path, side_files: SideFiles, files: Files) -> None:
    """Write or copy each one, with its folders. Raises StorageError."""
    for name, content in side_files.items():
        make_parents(folder, folder / name, files)
        if isinstance(content, bytes):
            files.write_file(folder / name, content)
        else:
            copy_file(content, folder / name, files)


def make_parents(folder: Path, path: Path, files: Files) -> None:
    """Make the directories between `folder` and a file below it."""
    for parent in list(path.relative_to(folder).parents)[-2::-1]:
        if files.status(folder / parent) is None:
            files.make_directory(folder / parent)


def _refusal(name: str, expected: str) -> UsageError:
    return UsageError(f"the side file {shown(name)}", expected=expected, file=name, field="side_files")
