"""Adapters written: as they were read, or in the other format, by the inverse of the base's rules."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from weightloom.engine.errors import CheckpointError, UsageError
from weightloom.engine.planning.lifting import WHOLE
from weightloom.engine.saving.arrays import save_arrays
from weightloom.engine.saving.save import save
from weightloom.runtime.adapting.adapter_config import NAME as CONFIG_NAME
from weightloom.runtime.adapting.adapter_plan import AdapterPlan, plan_on
from weightloom.runtime.adapting.adapter_source import MLX_WEIGHTS, WEIGHTS, open_adapter
from weightloom.runtime.adapting.copies import copies_of_base
from weightloom.runtime.adapting.fusing import Base
from weightloom.runtime.adapting.mlx_form import as_mlx
from weightloom.runtime.adapting.packed_forms import as_unpacked, packed_forms
from weightloom.runtime.adapting.peft_form import as_peft
from weightloom.runtime.adapting.published import published
from weightloom.runtime.adapting.written import About
from weightloom.runtime.configs.config import read_config
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT, MLX

if TYPE_CHECKING:
    import mlx.core as mx

Form = Literal["original", "peft", "mlx"]
FORMS: tuple[Form, ...] = get_args(Form)
_ORIGINAL = "original"
# The layout whose names a format's are, and how it is written.
_WRITERS = {"peft": (DEFAULT_LAYOUT, as_peft), "mlx": (MLX, as_mlx)}
_BASE_FIELDS = ("base_model_name_or_path", "model")


@dataclass(frozen=True, slots=True)
class AdapterWritten:
    """The files that were written, how many tensors, and what is to know."""

    files: tuple[Path, ...]
    tensors: int
    notes: tuple[str, ...] = ()


def write_converted(
    source: Path, base: Base, task: str | None, target: Path, form: Form, overwrite: bool = False
) -> AdapterWritten:
    """Read an adapter, hold it against its base, and write it; only headers of the base are needed.

    Raises PlanError listing all that does not fit or that the format has no place for, NotInvertible where the base's
    rules have no way back, UsageError for a target that is not empty, and as `open_adapter` and writing do.
    """
    opened = open_adapter(source)
    with closing(opened.checkpoint):
        params = as_unpacked(base.plan.params, packed_forms(base.plan, base.config))
        found = plan_on(opened, base.rules(opened.layout), params, base.config)
        arrays = found.plan.load()
        return write_adapter(found, arrays, base, task, target, form, overwrite)


def write_adapter(
    found: AdapterPlan,
    arrays: Mapping[str, mx.array],
    base: Base,
    task: str | None,
    target: Path,
    form: Form,
    overwrite: bool,
) -> AdapterWritten:
    """Write an adapter; `arrays` are by the names of its plan. Raises as `write_converted`.

    In the format that it was read in, header, order of tensors and config are those that were read, and its checkpoint
    has to be open.
    """
    notes = found.notes
    if is_as_read(found, form):
        config = {CONFIG_NAME: found.source.path / CONFIG_NAME}
        files = save(found.plan, arrays, target, overwrite=overwrite, side_files=config)
        return AdapterWritten((*files, target / CONFIG_NAME), len(found.plan.sources), notes)
    layout, writer = _WRITERS[form]
    copies = copies_of_base(found, arrays, base.plan)
    changed = {name: array for name, array in arrays.items() if name not in {f"{WHOLE}.{each}" for each in copies}}
    written = writer(published(found, changed, base.rules(layout), base.config), _about(found, base, task))
    path = save_arrays(
        written.arrays,
        target / written.file,
        replaced=(WEIGHTS, MLX_WEIGHTS, CONFIG_NAME),
        overwrite=overwrite,
        side_files={CONFIG_NAME: written.config_bytes},
        metadata={"format": "pt"} if form == "peft" else {"format": "mlx"},
    )
    return AdapterWritten(
        (path, target / CONFIG_NAME), len(written.arrays), (*notes, *written.notes, *map(_left_out, copies))
    )


def _left_out(name: str) -> str:
    return f"{name} was left out: it is the base's own, which stands beside its factors"


def is_as_read(found: AdapterPlan, form: Form) -> bool:
    """Say whether a format is the one that an adapter was read in; raises UsageError for one that there is not."""
    if form not in FORMS:
        raise UsageError(f"format {form!r}", expected=f"one of {', '.join(FORMS)}", field="format")
    return form == _ORIGINAL or _WRITERS[form][0] == found.source.layout


def reopened(found: AdapterPlan) -> AdapterPlan:
    """Give the same with its files open again; raises CheckpointError where they hold other tensors than were read."""
    source = open_adapter(found.source.path)
    before = {name: spec.logical() for name, spec in found.plan.sources.items()}
    if source.checkpoint.logical != before:
        source.checkpoint.close()
        raise CheckpointError(
            "the adapter's files hold other tensors than those that were read",
            expected="the files as they were, whose form is written again",
            hint="write it in the other format, or load it again",
            file=found.source.path,
        )
    return replace(found, source=source, plan=replace(found.plan, checkpoint=source.checkpoint))


def base_of(path: Path) -> str | None:
    """Give the path or name of the base that an adapter's config has, if any; raises ConfigError for no JSON."""
    config = path / CONFIG_NAME
    values: Mapping[str, Any] = read_config(config).values if config.is_file() else {}
    named = (values.get(name) for name in _BASE_FIELDS)
    return next((name for name in named if isinstance(name, str) and name), None)


def _about(found: AdapterPlan, base: Base, task: str | None) -> About:
    text = base.config.get("text_config")
    config = {**(text if isinstance(text, Mapping) else {}), **base.config}
    layers = config.get("num_hidden_layers")
    return About(base_of(found.source.path), task, layers if isinstance(layers, int) else 0)
