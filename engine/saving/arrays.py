"""Arrays in memory to one safetensors file in a directory that is replaced in one step, with files beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.array_bytes import spec_and_bytes
from weightloom.engine.checkpoints.header import build_header
from weightloom.engine.disk.commit import replacing_directory
from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.natural import natural
from weightloom.engine.saving.shards import ShardWriter
from weightloom.engine.saving.side_files import SideFiles, check_side_files, write_side_files

if TYPE_CHECKING:
    from weightloom.engine.array_bytes import Array


def save_arrays(
    arrays: Mapping[str, Array],
    path: Path,
    *,
    replaced: Collection[str] = (),
    overwrite: bool = False,
    side_files: SideFiles | None = None,
    metadata: Mapping[str, str] | None = None,
    files: Files = FILES,
) -> Path:
    """Write arrays to `path`, names in natural order; a crash leaves the old directory or the new one.

    `replaced` are files of an old directory that belong to what is replaced; all others stay. Raises UsageError for a
    target that is not empty without `overwrite`, StorageError where the file system refuses.
    """
    beside = side_files or {}
    check_side_files(beside, [path.name])
    known = {name: spec_and_bytes(name, arrays[name]) for name in sorted(arrays, key=natural)}
    header = build_header([(name, spec) for name, (spec, _) in known.items()], metadata)
    with replacing_directory(path.parent, overwrite=overwrite, ours=lambda _: replaced, files=files) as folder:
        length = sum(spec.nbytes for spec, _ in known.values())
        with ShardWriter(folder / path.name, header, length, files) as writer:
            for _, data in known.values():
                writer.write(data)
        write_side_files(folder, beside, files)
    return path
