"""verify: load a checkpoint, save it somewhere else, and compare the two byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.os_errors import storage_error
from weightloom.engine.plan import Plan, Progress

BLOCK = 8 << 20
MAX_DIFFERENCES = 10

Bar = Callable[[str], AbstractContextManager[Progress | None]]


@dataclass(frozen=True, slots=True)
class FilePair:
    """A file and the one written for it, by the sha256 of each; `written` None when there is none."""

    name: str
    source: str
    written: str | None

    @property
    def equal(self) -> bool:
        """Say whether both have the same bytes."""
        return self.source == self.written


@dataclass(frozen=True, slots=True)
class Difference:
    """A tensor that came back changed, and how."""

    name: str
    how: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What the comparison found. `differences` has all of them, in the order of the names."""

    tensors: int
    nbytes: int
    differences: tuple[Difference, ...]
    files: tuple[FilePair, ...]
    dropped: int
    tied: int

    @property
    def equal(self) -> bool:
        """Say whether every tensor and every file came back as it was."""
        return not self.differences and all(file.equal for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Give every field as JSON values, and the verdict."""
        return {"equal": self.equal, "tensors_equal": self.tensors - len(self.differences), **asdict(self)}


def verify(plan: Plan, folder: Path, bar: Bar) -> Verification:
    """Load the plan's parameters, save them into a new directory in `folder`, and compare it with the source.

    Raises PlanError or NotInvertible before anything is read when the plan does not fit or has no way back.
    """
    plan.check()
    plan.inverse()
    checkpoint = plan.checkpoint
    assert checkpoint is not None
    target = folder / "written"
    with bar("load") as progress:
        params = plan.load(progress=progress)
    with bar("save") as progress:
        plan.save(params, target, progress=progress)
    del params
    with bar("compare") as progress:
        return compare(plan, checkpoint, target, progress)


def compare(plan: Plan, checkpoint: Checkpoint, target: Path, progress: Progress | None) -> Verification:
    """Compare a checkpoint with the one written at `target`, tensor by tensor and file by file."""
    pairs = _paths(checkpoint, target)
    index = target / checkpoint.index_path.name if checkpoint.index_path else None
    written = [path for _, path in pairs if path != index and path.is_file()]
    with Checkpoint.open(index) if index else Checkpoint.from_files(written) as other:
        found = tuple(_differences(checkpoint, other, progress))
    return Verification(
        tensors=len(checkpoint.tensors),
        nbytes=checkpoint.nbytes,
        differences=found,
        files=tuple(_file_pair(source, path) for source, path in pairs),
        dropped=len(plan.report.dropped),
        tied=len(plan.report.tied),
    )


def _paths(checkpoint: Checkpoint, target: Path) -> list[tuple[Path, Path]]:
    """Pair each file with the one written for it: of the same name, or the only one that has taken another."""
    index = checkpoint.index_path
    sources = (*checkpoint.files, *((index,) if index else ()))
    pairs = [(source, target / (source.relative_to(index.parent) if index else source.name)) for source in sources]
    renamed = [path for path in target.glob("*.safetensors") if path not in {each for _, each in pairs}]
    if len(pairs) == len(renamed) == 1 and not pairs[0][1].is_file():
        return [(pairs[0][0], renamed[0])]
    return pairs


def _file_pair(source: Path, written: Path) -> FilePair:
    return FilePair(source.name, sha256(source), sha256(written) if written.is_file() else None)


def sha256(path: Path) -> str:
    """Give a file's sha256 in hex. Raises StorageError where reading fails."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise storage_error("read", path, error) from error


def _differences(one: Checkpoint, other: Checkpoint, progress: Progress | None) -> Iterator[Difference]:
    done = 0
    for name in one.tensors:
        how = difference(one, other, name)
        if how is not None:
            yield Difference(name, how)
        done += one.tensors[name].nbytes
        if progress is not None:
            progress(done, one.nbytes)
    yield from (Difference(name, "it is new") for name in other.tensors if name not in one.tensors)


def difference(one: Checkpoint, other: Checkpoint, name: str) -> str | None:
    """Say how a tensor of `one` differs in `other`, or None; data is compared in blocks of 8 MiB."""
    if name not in other.tensors:
        return "it is not there"
    spec, found = one.tensors[name].logical(), other.tensors[name].logical()
    if spec != found:
        return f"{spec} became {found}"
    for start in range(0, spec.nbytes, BLOCK):
        length = min(BLOCK, spec.nbytes - start)
        mine, its = bytearray(length), bytearray(length)
        one.read_into(name, start, memoryview(mine))
        other.read_into(name, start, memoryview(its))
        if mine != its:
            return f"byte {start + _first_difference(mine, its)} differs"
    return None


def _first_difference(mine: bytearray, its: bytearray) -> int:
    """Find the first byte at which two different buffers of one length differ, by halving."""
    low, high = 0, len(mine)
    while high - low > 1:
        middle = (low + high) // 2
        if mine[low:middle] != its[low:middle]:
            high = middle
        else:
            low = middle
    return low
