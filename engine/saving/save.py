"""Write a checkpoint: parameters back to files, or one layout straight to another, a tensor at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.disk.commit import replacing_directory
from weightloom.engine.disk.files import FILES, Files
from weightloom.engine.errors import PlanError
from weightloom.engine.natural import natural
from weightloom.engine.plan import Plan, Progress, need_loadable
from weightloom.engine.reading.origin import BLOCK, CheckpointOrigin, Origin, ParameterOrigin
from weightloom.engine.reading.results import Results
from weightloom.engine.reading.tie_check import check_ties
from weightloom.engine.saving.held import as_held, with_other_ends
from weightloom.engine.saving.remainders import check_fillers, filler_of
from weightloom.engine.saving.restoring import refuse_restoring, restored
from weightloom.engine.saving.shard_plan import Layout, Output, ShardPlan, plan_shards
from weightloom.engine.saving.shards import ShardWriter
from weightloom.engine.saving.side_files import SideFiles, check_side_files, make_parents, write_side_files
from weightloom.engine.saving.weight_files import refuse_mixing, weight_files

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.engine.checkpoints.checkpoint import Checkpoint


def save(
    plan: Plan,
    params: Mapping[str, mx.array],
    directory: Path,
    *,
    max_shard_bytes: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    side_files: SideFiles | None = None,
    metadata: Mapping[str, str] | None = None,
    beside: Collection[ShardPlan] = (),
    files: Files = FILES,
) -> list[Path]:
    """Write the plan's checkpoint from parameters (see `Plan.save`).

    `side_files` (name -> content, or a file to copy) go beside it, as they are, and so do the files of `beside`.
    `metadata` is that of new files, by default the source's.
    """
    if plan.inverted:
        raise PlanError(
            "this plan was turned round",
            expected="a plan built on a checkpoint or by save_plan, not its inverse",
            hint="call save on the plan itself: it goes back by the inverse",
        )
    held = with_other_ends(params, plan.report)
    back = as_held(plan.inverse(), held)
    if plan.checkpoint is not None:
        plan.checkpoint.check_unchanged()
    groups = (*back.groups, *back.copies)
    origin = ParameterOrigin(held, filler_of(plan.checkpoint))
    check_fillers(origin, groups)
    exact = restored(groups, origin, plan.checkpoint)
    layout = plan_shards(back, plan.checkpoint, max_shard_bytes, exact, metadata).with_shards(beside)
    return write(layout, origin, directory, overwrite, progress, side_files or {}, files, plan.checkpoint)


def convert(
    plan: Plan,
    directory: Path,
    *,
    max_shard_bytes: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    side_files: SideFiles | None = None,
    metadata: Mapping[str, str] | None = None,
    beside: Collection[ShardPlan] = (),
    files: Files = FILES,
) -> list[Path]:
    """Write a plan's targets straight from its checkpoint's files; no model is ever held.

    `metadata` is that of the new files, by default the source's; `beside` are files that go with them. Raises
    PlanError when the plan does not fit, CheckpointError when a source changed meanwhile.
    """
    need_loadable(plan)
    plan.check()
    refuse_restoring(plan.groups)
    assert plan.checkpoint is not None
    plan.checkpoint.check_unchanged()
    check_ties(plan)
    layout = plan_shards(plan_targets(plan), None, max_shard_bytes, metadata=metadata).with_shards(beside)
    origin = CheckpointOrigin(plan.checkpoint)
    return write(layout, origin, directory, overwrite, progress, side_files or {}, files, plan.checkpoint)


def convert_back(
    plan: Plan,
    written: Checkpoint,
    directory: Path,
    *,
    max_shard_bytes: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    side_files: SideFiles | None = None,
    files: Files = FILES,
) -> list[Path]:
    """Write a plan's checkpoint again from files that hold what the plan leads to, tensor by tensor.

    What the plan keeps, and what its steps round away, comes from its own checkpoint. Raises NotInvertible where
    there is no way back, CheckpointError when a source changed meanwhile.
    """
    back = plan.inverse()
    written.check_unchanged()
    origin = CheckpointOrigin(written, filler_of(plan.checkpoint))
    groups = (*back.groups, *back.copies)
    check_fillers(origin, groups)
    layout = plan_shards(back, plan.checkpoint, max_shard_bytes, restored(groups, origin, plan.checkpoint))
    return write(layout, origin, directory, overwrite, progress, side_files or {}, files, written)


def copy_checkpoint(
    checkpoint: Checkpoint,
    directory: Path,
    *,
    max_shard_bytes: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    side_files: SideFiles | None = None,
    files: Files = FILES,
) -> list[Path]:
    """Write a checkpoint's own tensors again, byte for byte: in its own shards, or in new ones of a given size."""
    checkpoint.check_unchanged()
    as_it_is = Plan(sources={}, params=checkpoint.tensors, groups=(), checkpoint=checkpoint)
    layout = plan_shards(as_it_is, checkpoint, max_shard_bytes)
    origin = CheckpointOrigin(checkpoint)
    return write(layout, origin, directory, overwrite, progress, side_files or {}, files, checkpoint)


def plan_targets(plan: Plan) -> Plan:
    """Give the plan with the targets that it writes in natural order."""
    from dataclasses import replace

    ordered = dict(sorted(plan.params.items(), key=lambda item: natural(item[0])))
    made = {target for group in plan.groups for target in group.targets}
    return replace(plan, params={name: spec for name, spec in ordered.items() if name in made})


def write(
    layout: Layout,
    origin: Origin,
    directory: Path,
    overwrite: bool,
    progress: Progress | None,
    side_files: SideFiles,
    files: Files,
    checkpoint: Checkpoint | None = None,
) -> list[Path]:
    """Write all files of a layout into a directory that is replaced in one step."""
    meter = _Meter(progress, layout.nbytes)
    names = [shard.name for shard in layout.shards] + ([layout.index_name] if layout.index is not None else [])
    check_side_files(side_files, names)
    if layout.index is None:
        refuse_mixing(directory, names, files)

    def ours(folder: Path) -> Collection[str]:
        return weight_files(folder, files)

    results = Results(origin)
    with replacing_directory(directory, overwrite=overwrite, ours=ours, files=files) as folder:
        for shard in layout.shards:
            _write_shard(folder, shard, results, files, meter)
        if layout.index is not None:
            files.write_file(folder / layout.index_name, layout.index)
        write_side_files(folder, side_files, files)
        if checkpoint is not None:
            checkpoint.check_unchanged()
    return [directory / name for name in names]


def _write_shard(folder: Path, shard: ShardPlan, results: Results, files: Files, meter: _Meter) -> None:
    path = folder / shard.name
    make_parents(folder, path, files)
    with ShardWriter(path, shard.header, shard.data_length, files) as writer:
        for output in shard.outputs:
            offset = output.start
            for piece in _pieces(output, results):
                writer.write_at(offset, piece)
                offset += len(piece)
                meter.add(len(piece))


def _pieces(output: Output, results: Results) -> Iterator[memoryview]:
    if output.group is not None:
        return results.pieces(output.group, output.number)
    return _kept_pieces(output)


def _kept_pieces(output: Output) -> Iterator[memoryview]:
    """Copy a tensor that no parameter holds from its place in the source."""
    assert output.kept is not None
    source, offset = output.kept
    end = offset + output.nbytes
    while offset < end:
        out = memoryview(bytearray(min(BLOCK, end - offset)))
        source.read_into(offset, out)
        yield out
        offset += len(out)


class _Meter:
    """Tells a progress callback how many bytes are written."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._done, self._total = progress, 0, total

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)
