"""Saving a loaded model: as it was read, or in a named layout, with the files beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine import Checkpoint, Plan
from weightloom.engine.errors import UsageError
from weightloom.engine.saving import save as engine_save
from weightloom.plugins.modules.binding import parameters
from weightloom.rules import registry
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT
from weightloom.runtime.opening.opening import GGUF
from weightloom.runtime.saving.order import ORIGINAL
from weightloom.runtime.saving.saved_layout import writing

if TYPE_CHECKING:
    from weightloom.engine.plan import Progress
    from weightloom.runtime.model import LoadedModel


def save(
    m: LoadedModel,
    directory: str | Path,
    layout: str = ORIGINAL,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Write a model (see `LoadedModel.save`)."""
    if m.share is not None:
        raise UsageError(
            f"this process holds a part of the model ({m.share})",
            expected="a model that is whole",
            hint="`convert` writes any layout from disk to disk; or load it as one process",
            field="sharding",
        )
    if layout == ORIGINAL and m.layout == GGUF:
        raise UsageError(
            "GGUF files are read and not written",
            expected="the name of a layout, such as hf",
            hint='save with layout="hf"',
            file=m.path,
        )
    if layout != ORIGINAL:
        _refuse_half(m)
        _check_layout(m, layout)
    made = writing(m, layout)
    written = engine_save.save(
        made.plan,
        parameters(m.model),
        Path(directory),
        overwrite=overwrite,
        progress=progress,
        side_files=made.side_files,
        metadata=made.metadata,
        beside=made.beside,
    )
    if layout == ORIGINAL and Path(directory).resolve() == m.opened.folder.resolve():
        m.plan = _over_new_files(m.plan, Checkpoint.open(m.path))
    return written


def _over_new_files(plan: Plan, checkpoint: Checkpoint) -> Plan:
    """Give the same plan over the files that were just written in the place of its own, so that it saves again."""
    before = None if plan.before is None else _over_new_files(plan.before, checkpoint)
    return replace(plan, sources=checkpoint.tensors, checkpoint=checkpoint, before=before)


def _refuse_half(m: LoadedModel) -> None:
    if m.half is not None:
        raise UsageError(
            m.half.note,
            expected="the whole checkpoint, for a layout that is named",
            hint='save with layout="original", which writes the towers back too; or `convert` the files',
            file=m.path,
            field="layout",
        )


def _check_layout(m: LoadedModel, layout: str) -> None:
    known = {name for kind in m.architecture.model_types if kind in registry for name in registry.layouts(kind)}
    # A plugin may bring rules of its own alone: they are how its checkpoints are published.
    known = (known | {DEFAULT_LAYOUT}) - {GGUF}
    if layout not in known:
        raise UsageError(
            f"{m.architecture.name} has no layout {layout!r}",
            expected=", ".join([ORIGINAL, *sorted(known)]),
            field="layout",
        )
