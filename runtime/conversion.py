"""convert: one layout straight to another, disk to disk, side files included. No model is held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine import save
from weightloom.engine.errors import UsageError
from weightloom.runtime.choice import Wish, choose
from weightloom.runtime.config import NAME as CONFIG_NAME
from weightloom.runtime.conversion_target import check_target
from weightloom.runtime.dtype_field import with_dtype_field
from weightloom.runtime.opening import GGUF, Opened, open_path
from weightloom.runtime.reading import settled
from weightloom.runtime.side_files import LeftBehind, SideFiles, side_files

if TYPE_CHECKING:
    from weightloom.engine.plan import Progress

ORIGINAL = "original"
CANONICAL = "canonical"
DEFAULT_SHARD_BYTES = 5 * 10**9


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for: target directory, layout (ORIGINAL, CANONICAL or a name), and how it is written.

    `dtype` is a safetensors name (F32, F16, BF16) or None for as it is; `max_shard_bytes` None keeps the source's
    own files where nothing else changes, and cuts shards of 5 GB elsewhere.
    """

    target: Path
    layout: str = ORIGINAL
    dtype: str | None = None
    max_shard_bytes: int | None = None
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written: weight files, side files, tensors; and what was not, files with the reason and tensors."""

    files: tuple[Path, ...]
    side_files: tuple[str, ...]
    left_behind: tuple[LeftBehind, ...]
    tensors: int
    nbytes: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """A write that is ready to go, and what it will have written."""

    write: Callable[..., list[Path]]
    max_shard_bytes: int | None
    tensors: int
    nbytes: int
    left_out: tuple[str, ...] = ()


def convert(source: Path, order: Order, wish: Wish, progress: Progress | None = None) -> Converted:
    """Write a checkpoint in another layout, dtype or shard size; the target is replaced in one step.

    Raises PlanError when it does not fit, NotInvertible when the layout cannot be written, UsageError for a
    target that must not be replaced or an unknown layout, CheckpointError for an unsound source, StorageError
    where reading or writing fails. The target is as it was then.
    """
    with open_path(source) as opened:
        # Of a GGUF file's directory nothing travels, so that the target may lie in it.
        if opened.layout != GGUF or order.target.resolve().parent != opened.folder.resolve():
            check_target(opened.folder, order.target, order.overwrite)
        _check_layout(opened, order)
        beside = _beside(opened, order.target)
        carried = _carried(opened, beside, order.dtype)
        job = _job(opened, order, settled(wish, opened.layout), str(source))
        files = job.write(
            order.target,
            max_shard_bytes=job.max_shard_bytes,
            overwrite=order.overwrite,
            progress=progress,
            side_files=carried,
        )
    return Converted(tuple(files), tuple(carried), beside.left, job.tensors, job.nbytes, job.left_out)


def _check_layout(opened: Opened, order: Order) -> None:
    if order.layout == GGUF or (opened.layout == GGUF and order.layout == ORIGINAL):
        raise UsageError(
            "GGUF files are read and not written",
            expected="the name of a layout, such as hf",
            hint="convert with --layout hf",
            file=opened.path,
            field="layout",
        )


def _beside(opened: Opened, target: Path) -> SideFiles:
    """Sort what lies beside the weights; in place it stays where it is, and a file alone has nothing beside it."""
    folder, config, checkpoint = opened.folder, opened.config, opened.checkpoint
    if folder.resolve() == target.resolve():
        return SideFiles(((CONFIG_NAME, config.path),) if config else (), ())
    if opened.layout == GGUF or not (opened.path.is_dir() or config is not None):
        return SideFiles((), ())
    return side_files(folder, {*checkpoint.files, *((checkpoint.index_path,) if checkpoint.index_path else ())})


def _carried(opened: Opened, beside: SideFiles, dtype: str | None) -> Mapping[str, bytes | Path]:
    found: dict[str, bytes | Path] = dict(beside.taken)
    if opened.layout == GGUF:
        found.update(opened.side_files())
    if dtype is not None and opened.config is not None and CONFIG_NAME in found:
        found[CONFIG_NAME] = with_dtype_field(opened.config.raw, dtype)
    return found


def _job(opened: Opened, order: Order, wish: Wish, place: str) -> _Job:
    checkpoint = opened.checkpoint
    if order.layout == ORIGINAL and order.dtype is None:
        copy = partial(save.copy_checkpoint, checkpoint)
        return _Job(copy, order.max_shard_bytes, len(checkpoint.tensors), checkpoint.nbytes)
    from weightloom.runtime.conversion_plan import conversion_plan

    choice = choose(opened.config, wish, place)
    plan, left_out = conversion_plan(opened, choice, order.layout, order.dtype)
    written = save.plan_targets(plan).params
    nbytes = sum(spec.nbytes for spec in written.values())
    return _Job(
        partial(save.convert, plan), order.max_shard_bytes or DEFAULT_SHARD_BYTES, len(written), nbytes, left_out
    )
