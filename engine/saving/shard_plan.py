"""Which bytes go where: the source's own shards again, or new ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from weightloom.engine.checkpoints.checkpoint import Checkpoint, Shard
from weightloom.engine.checkpoints.header import build_header
from weightloom.engine.checkpoints.source import ByteSource
from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.saving.shards import index_json, shard_names, split_into_shards
from weightloom.engine.saving.weight_files import can_be_found
from weightloom.engine.spec import TensorSpec

INDEX_NAME = "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Output:
    """One tensor of a file: where its data starts, and what it comes from.

    From result `number` of `group`, or, if no parameter holds it, from `kept`: a source and an absolute offset.
    """

    name: str
    start: int
    nbytes: int
    group: Group | None = None
    number: int = 0
    kept: tuple[ByteSource, int] | None = None


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """One file to write: its header's JSON, and its tensors in the order of their data."""

    name: str
    header: bytes
    data_length: int
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """All files to write."""

    shards: tuple[ShardPlan, ...]
    index_name: str = INDEX_NAME
    index: bytes | None = None

    def with_shards(self, more: Iterable[ShardPlan]) -> Layout:
        """Give the same with more files, which no index names."""
        return replace(self, shards=(*self.shards, *more))

    @property
    def nbytes(self) -> int:
        """Bytes of data."""
        return sum(shard.data_length for shard in self.shards)


def plan_shards(
    back: Plan,
    checkpoint: Checkpoint | None,
    max_shard_bytes: int | None,
    restored: Collection[str] = (),
    metadata: Mapping[str, str] | None = None,
) -> Layout:
    """Lay out the tensors of an inverse plan: as in the source files, or anew with a shard size or without files.

    `restored` names tensors that are made by a group and yet copied from the source. `metadata` goes into new files;
    by default it is the checkpoint's.
    """
    origin = _Origin(back, checkpoint, restored)
    if checkpoint is not None and checkpoint.files and max_shard_bytes is None:
        return _as_read(origin, checkpoint)
    return _anew(origin, max_shard_bytes, metadata)


@dataclass(frozen=True)
class _Origin:
    """Where the bytes of each tensor come from."""

    back: Plan
    checkpoint: Checkpoint | None
    restored: Collection[str]

    def output(self, name: str, start: int, nbytes: int) -> Output:
        group = self.back.by_target.get(name)
        if group is not None and name not in self.restored:
            return Output(name, start, nbytes, group, group.targets.index(name))
        if self.checkpoint is None:
            raise PlanError(f"{name} comes from no parameter", expected="a parameter for each tensor", tensor=name)
        return Output(name, start, nbytes, kept=self.checkpoint.source_of(name))


def _as_read(origin: _Origin, checkpoint: Checkpoint) -> Layout:
    names = [relative_name(shard, checkpoint) for shard in checkpoint.shards]
    if len(names) == 1 and checkpoint.index_path is None and not can_be_found(names):
        names = shard_names(1)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PlanError(
            f"two source files are called {twice[0]}",
            expected="files of different names, which can lie in one directory",
            hint="give a shard size, so that new files are made",
            file=twice[0],
        )
    shards = tuple(_same_shard(name, shard, origin) for name, shard in zip(names, checkpoint.shards, strict=True))
    changed = any(plan.header != shard.header.raw for plan, shard in zip(shards, checkpoint.shards, strict=True))
    index, index_name = checkpoint.index_bytes, INDEX_NAME
    if checkpoint.index_path is not None:
        index_name = checkpoint.index_path.name
    if (changed and index is not None) or (index is None and not can_be_found(names)):
        name_of = dict(zip(checkpoint.files, names, strict=True))
        owners = {tensor: name_of[spec.file] for tensor, spec in checkpoint.tensors.items() if spec.file is not None}
        index = index_json(owners, sum(shard.data_length for shard in shards))
    return Layout(shards, index_name, index)


def relative_name(shard: Shard, checkpoint: Checkpoint) -> str:
    """Give a file's name as seen from its index, or alone."""
    assert shard.path is not None
    if checkpoint.index_path is None:
        return shard.path.name
    return str(shard.path.relative_to(checkpoint.index_path.parent))


def _same_shard(name: str, shard: Shard, origin: _Origin) -> ShardPlan:
    """Write a source shard again: its header verbatim, unless a tensor changed its dtype."""
    tensors = origin.back.params
    here = {e.name: tensors[e.name] for e in shard.header.entries if _is_here(e.name, shard, tensors)}
    by_data = sorted(shard.header.entries, key=lambda entry: (entry.start, entry.end))
    same = all(here[e.name].dtype == e.dtype for e in shard.header.entries if e.name in here)
    if same:
        outputs = [
            origin.output(e.name, e.start, e.end - e.start)
            if e.name in here
            else Output(e.name, e.start, e.end - e.start, kept=(shard.source, shard.header.data_start + e.start))
            for e in by_data
        ]
        return ShardPlan(name, shard.header.raw, max((e.end for e in by_data), default=0), tuple(outputs))
    order = [(e.name, here.get(e.name, TensorSpec(e.dtype, e.shape)).logical()) for e in by_data]
    data_start = shard.header.data_start
    kept = {e.name: (shard.source, data_start + e.start) for e in by_data if e.name not in here}
    return _new_shard(name, order, shard.header.metadata, origin, kept)


def _is_here(name: str, shard: Shard, tensors: Mapping[str, TensorSpec]) -> bool:
    """Say whether the index (if any) takes this tensor from this shard, not from another."""
    return name in tensors and tensors[name].file in (None, shard.path)


def _new_shard(
    name: str,
    order: list[tuple[str, TensorSpec]],
    metadata: Mapping[str, str] | None,
    origin: _Origin,
    kept: Mapping[str, tuple[ByteSource, int]],
) -> ShardPlan:
    outputs: list[Output] = []
    start = 0
    for tensor, spec in order:
        if tensor in kept:
            outputs.append(Output(tensor, start, spec.nbytes, kept=kept[tensor]))
        else:
            outputs.append(origin.output(tensor, start, spec.nbytes))
        start += spec.nbytes
    return ShardPlan(name, build_header(order, metadata), start, tuple(outputs))


def _anew(origin: _Origin, max_shard_bytes: int | None, metadata: Mapping[str, str] | None) -> Layout:
    tensors = {name: spec.logical() for name, spec in origin.back.params.items()}
    parts = split_into_shards(tensors, max_shard_bytes)
    # Readers that insist on a format accept this one: published names and layouts are those of PyTorch.
    found = dict(origin.checkpoint.metadata) if origin.checkpoint else {}
    metadata = metadata or found or {"format": "pt"}
    shards = tuple(
        _new_shard(name, [(tensor, tensors[tensor]) for tensor in part], metadata, origin, {})
        for name, part in zip(shard_names(len(parts)), parts, strict=True)
    )
    return Layout(shards, INDEX_NAME, _index_of(shards) if len(shards) > 1 else None)


def _index_of(shards: tuple[ShardPlan, ...]) -> bytes:
    assignment = {output.name: shard.name for shard in shards for output in shard.outputs}
    return index_json(assignment, sum(shard.data_length for shard in shards))
