"""A conversion made ready: which of the ways it goes, and what it will have written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.engine.errors import UsageError
from weightloom.engine.plan import Plan
from weightloom.engine.quantizing.rounding import Rounding, roundings
from weightloom.engine.saving import save
from weightloom.runtime.adapting.losses import Loss
from weightloom.runtime.choosing.choice import Choice, Wish
from weightloom.runtime.choosing.layout_seen import choose_opened
from weightloom.runtime.configs.config import NAME as CONFIG_NAME
from weightloom.runtime.configs.dtype_field import with_dtype_field
from weightloom.runtime.configs.repairs import known_repairs
from weightloom.runtime.converting.conversion_notes import notes_on, notes_on_way_back
from weightloom.runtime.converting.conversion_plan import ConversionPlan, conversion_plan
from weightloom.runtime.converting.way_back import way_back
from weightloom.runtime.opening.kept import Kept
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT, MLX, metadata_in
from weightloom.runtime.opening.opening import GGUF, Opened
from weightloom.runtime.quantizing.config_section import packed_modules, section_of, with_quantization
from weightloom.runtime.saving.beside_layout import keeps_beside, kept_beside
from weightloom.runtime.saving.mlx_config import config_in
from weightloom.runtime.saving.named_settings import modules_made, with_names
from weightloom.runtime.saving.order import CANONICAL, DEFAULT_SHARD_BYTES, ORIGINAL, Order
from weightloom.runtime.saving.packed_config import with_packing
from weightloom.runtime.surgery.surgery_module import with_config


@dataclass(frozen=True, slots=True)
class Job:
    """A write that is ready to go, and what it will have written.

    `beside` goes over the side files that travel; `kept` are source tensors in the file of kept ones, `left_out`
    those that are nowhere. `losses` are what rounding takes of changes that are fused into packed parameters,
    `rounding` what quantizing takes of each matrix, where that is measured.
    """

    write: Callable[..., list[Path]]
    tensors: int
    nbytes: int
    beside: Mapping[str, bytes | Path] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    rounding: tuple[Rounding, ...] = ()


def make_job(opened: Opened, order: Order, wish: Wish, place: str) -> Job:
    """Choose the way and plan it; raises as `convert` does, before anything is written."""
    if order.surgery is not None or order.adapters or order.quantizing is not None:
        return _changed(opened, order, wish, place)
    kept = opened.kept
    same = order.layout == ORIGINAL or (kept is not None and order.layout == kept.note.layout)
    if same and order.dtype is None:
        return _copy(opened, order)
    if kept is not None and order.layout == kept.note.source_layout:
        return _back(opened, kept, order, wish)
    choice = choose_opened(opened, wish, place)
    plain = order.layout in (ORIGINAL, CANONICAL, DEFAULT_LAYOUT, choice.layout)
    if plain or opened.layout == GGUF or order.dtype is not None:
        return _anew(opened, choice, order)
    return _keeping(opened, choice, order)


def _changed(opened: Opened, order: Order, wish: Wish, place: str) -> Job:
    """Write what adapters, surgery and quantizing make of the parameters: nothing of the source is kept beside it."""
    choice = choose_opened(opened, wish, place)
    job = _anew(opened, choice, replace(order, layout=_layout(choice, order)))
    given = [name for name, each in (("adapters", order.adapters), ("surgery", order.surgery)) if each]
    who = " and ".join([*given, *([order.quantizing.title] if order.quantizing else [])])
    said = f"{who} changed the values: this is a new checkpoint, from which the source's bytes cannot be written"
    return replace(job, notes=(*job.notes, said))


def _layout(choice: Choice, order: Order) -> str:
    if order.layout != ORIGINAL:
        return order.layout
    return MLX if order.packs and MLX in choice.known else choice.layout


def _copy(opened: Opened, order: Order) -> Job:
    checkpoint = opened.checkpoint
    write = partial(save.copy_checkpoint, checkpoint, max_shard_bytes=order.max_shard_bytes)
    if opened.kept is None:
        return Job(write, len(checkpoint.tensors), checkpoint.nbytes)
    names = tuple(opened.kept.names)
    return Job(write, len(checkpoint.tensors), checkpoint.nbytes, {KEPT_NAME: opened.kept.path}, names)


def _back(opened: Opened, kept: Kept, order: Order, wish: Wish) -> Job:
    """Write the recorded source again, file by file."""
    if order.dtype is not None:
        raise UsageError(
            f"a dtype beside the {kept.note.source_layout} form that these weights were made from, which is recorded",
            expected="the layout alone, which gives that form back byte for byte",
            hint="convert without --dtype first, then cast the result",
            field="dtype",
        )
    plan = way_back(opened, kept, wish)
    write = partial(save.convert_back, plan, opened.checkpoint, max_shard_bytes=order.max_shard_bytes)
    beside = {} if kept.config is None else {CONFIG_NAME: kept.config.raw}
    return Job(write, len(kept.source.tensors), kept.source.nbytes, beside, notes=tuple(notes_on_way_back(kept)))


def _anew(opened: Opened, choice: Choice, order: Order) -> Job:
    """Write the tensors of a layout that keeps nothing beside it, or that keeps nothing exact."""
    found = conversion_plan(
        opened, choice, order.layout, order.dtype, order.surgery, order.adapters, order.losses, order.quantizing
    )
    plan, left_out = found.plan, found.left_out
    if opened.kept is not None:
        left_out = tuple(sorted({*left_out, *opened.kept.names}))
    config = _config(_as_written(opened, order), choice, order, found.dtype)
    config = None if config is None else with_names(config, modules_made(plan))
    config = config if config is None or not found.losses else with_packing(config, plan)
    if config is not None and order.quantizing is not None:
        config = with_quantization(config, section_of(packed_modules(plan)))
    elif config is not None and found.kept_packed is not None:
        config = with_quantization(config, section_of(found.kept_packed))
    beside = {**_of_gguf(opened), **({} if config is None else {CONFIG_NAME: config})}
    tensors, nbytes = _size(plan)
    about = () if found.quantized is None else found.quantized.notes
    notes = (*known_repairs(opened.config), *notes_on(plan, opened, choice, order), *found.notes, *about)
    write = _write(plan, opened, order)
    job = Job(write, tensors, nbytes, beside, left_out=left_out, notes=notes, losses=found.losses)
    return replace(job, rounding=_rounding(found, order))


def _rounding(found: ConversionPlan, order: Order) -> tuple[Rounding, ...]:
    """Measure what quantizing takes, where that is asked for; reads the weights once more."""
    done = found.quantized
    return () if done is None or not order.measured else tuple(roundings(done.floats, done.matrices))


def _keeping(opened: Opened, choice: Choice, order: Order) -> Job:
    """Write a layout with what it has no room for in a file of its own."""
    found = conversion_plan(opened, choice, order.layout, None)
    plan = found.plan
    config = _config(opened, choice, order, None)
    config = None if config is None else with_names(config, modules_made(plan))
    if config is not None and found.kept_packed is not None:
        config = with_quantization(config, section_of(found.kept_packed))
    shard = kept_beside(opened, choice, plan, order.layout, config)
    beside = {} if config is None else {CONFIG_NAME: config}
    tensors, nbytes = _size(plan)
    write = partial(_write(plan, opened, order), beside=(shard,))
    return Job(write, tensors, nbytes, beside, kept=keeps_beside(plan), notes=known_repairs(opened.config))


def _write(plan: Plan, opened: Opened, order: Order) -> Callable[..., list[Path]]:
    as_is = order.layout in (ORIGINAL, CANONICAL)
    metadata = None if as_is else metadata_in(order.layout, opened.checkpoint.metadata)
    size = order.max_shard_bytes or DEFAULT_SHARD_BYTES
    return partial(save.convert, plan, max_shard_bytes=size, metadata=metadata)


def _size(plan: Plan) -> tuple[int, int]:
    written = save.plan_targets(plan).params
    return len(written), sum(spec.nbytes for spec in written.values())


def _as_written(opened: Opened, order: Order) -> Opened:
    """Give the checkpoint with the config of what surgery leaves."""
    if order.surgery is None or not order.surgery.prunings:
        return opened
    return with_config(opened, order.surgery.changed(opened.need_config().values))


def _config(opened: Opened, choice: Choice, order: Order, dtype: str | None) -> bytes | None:
    """Give the config for the target, where it is not the one that lies beside the weights as it is."""
    config = opened.beside
    if config is None:
        return None
    raw = config.raw if order.layout == ORIGINAL else (opened.config or config).raw
    raw = raw if dtype is None else with_dtype_field(raw, dtype)
    return config_in(order.layout, choice, raw)


def _of_gguf(opened: Opened) -> Mapping[str, bytes | Path]:
    return opened.side_files() if opened.layout == GGUF else {}
