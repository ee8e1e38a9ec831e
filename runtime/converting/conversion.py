"""convert: one layout straight to another, disk to disk, side files included. No model is held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.errors import UsageError
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.configs.config import NAME as CONFIG_NAME
from weightloom.runtime.converting.conversion_job import Job, make_job
from weightloom.runtime.converting.conversion_target import check_target
from weightloom.runtime.opening.opening import GGUF, Opened, open_path
from weightloom.runtime.opening.quantization_file import needed_beside
from weightloom.runtime.opening.side_files import LeftBehind, SideFiles, side_files
from weightloom.runtime.saving.order import ORIGINAL
from weightloom.runtime.saving.order import Order as Order

if TYPE_CHECKING:
    from weightloom.engine.plan import Progress
    from weightloom.engine.quantizing.rounding import Rounding
    from weightloom.runtime.adapting.losses import Loss


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written: weight files, side files, tensors; and what was not, files with the reason and tensors.

    `kept` are source tensors that the layout has no room for and that lie beside it; `notes` says what else is to know.
    `losses` are what rounding takes of an adapter's changes of packed parameters, `rounding` what quantizing takes of
    each matrix, where that was asked for.
    """

    files: tuple[Path, ...]
    side_files: tuple[str, ...]
    left_behind: tuple[LeftBehind, ...]
    tensors: int
    nbytes: int
    left_out: tuple[str, ...]
    kept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    rounding: tuple[Rounding, ...] = ()


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
        job = make_job(opened, order, wish, str(source))
        beside = _beside(opened, order.target)
        carried = {**_carried(beside, job), **(needed_beside(opened) if order.as_is else {})}
        files = job.write(order.target, overwrite=order.overwrite, progress=progress, side_files=carried)
    return Converted(
        tuple(files),
        tuple(carried),
        beside.left,
        job.tensors,
        job.nbytes,
        job.left_out,
        job.kept,
        job.notes,
        job.losses,
        job.rounding,
    )


def _check_layout(opened: Opened, order: Order) -> None:
    if order.layout == GGUF or (opened.layout == GGUF and order.layout == ORIGINAL and not order.packs):
        raise UsageError(
            "GGUF files are read and not written",
            expected="the name of a layout, such as hf",
            hint="convert with --layout hf",
            file=opened.path,
            field="layout",
        )


def _beside(opened: Opened, target: Path) -> SideFiles:
    """Sort what lies beside the weights; in place it stays where it is, and a file alone has nothing beside it."""
    folder, config, checkpoint = opened.folder, opened.beside, opened.checkpoint
    if opened.container:
        return SideFiles(tuple(opened.side_files().items()), ())
    if folder.resolve() == target.resolve():
        return SideFiles(((CONFIG_NAME, config.path),) if config else (), ())
    if opened.layout == GGUF or not (opened.path.is_dir() or config is not None):
        return SideFiles((), ())
    return side_files(folder, {*checkpoint.files, *((checkpoint.index_path,) if checkpoint.index_path else ())})


def _carried(beside: SideFiles, job: Job) -> Mapping[str, bytes | Path]:
    return {**dict(beside.taken), **job.beside}
