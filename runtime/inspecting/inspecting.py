"""inspect: look at a checkpoint without reading a tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.errors import CheckpointError, UsageError, WeightloomError
from weightloom.engine.mapping.shapes import shape_text
from weightloom.engine.spec import TensorSpec
from weightloom.plugins.judging.vision import vision_of
from weightloom.runtime.choosing.choice import Choice, Wish, undecided
from weightloom.runtime.choosing.layout_seen import find_opened
from weightloom.runtime.configs.config import Config
from weightloom.runtime.configs.repairs import repair_lines
from weightloom.runtime.extras import need_mlx
from weightloom.runtime.inspecting.foreseen import Foreseen
from weightloom.runtime.inspecting.inspection import FileSize, Inspection, KeptBeside, LoadsAs, Template, Total
from weightloom.runtime.opening.foreign_code import ignored_code
from weightloom.runtime.opening.kept import Kept
from weightloom.runtime.opening.opening import Opened, open_path

if TYPE_CHECKING:
    from weightloom.runtime.choosing.decision import Decision
    from weightloom.runtime.inspecting.memory_need import MemoryNeed


def inspect(
    path: str | Path,
    *,
    estimate_memory: bool = False,
    context: int | None = None,
    batch: int = 1,
    dtype: str | None = None,
    quantize: str | None = None,
    wish: Wish | None = None,
) -> Inspection:
    """Describe the checkpoint at a path (directory, index or file) from headers and config alone.

    An architecture without rules is described all the same; only `estimate_memory`, which plans, needs rules. With it,
    `dtype` and `quantize` are what a load would be asked for, and `context` adds the caches after so many tokens of
    `batch` sequences each. Raises CheckpointError for a malformed checkpoint or config, StorageError where the system
    refuses.
    """
    wish = wish or Wish()
    asked = _asked(estimate_memory, Foreseen(dtype, quantize, context, batch))
    with open_path(path) as opened:
        checkpoint, config = opened.checkpoint, opened.config
        choice = find_opened(opened, wish, str(path))
        unknown = None if choice else undecided(config, wish, str(path))
        if unknown is not None and asked is not None:
            raise unknown
        decision = _decision(opened, wish)
        return Inspection(
            path=str(path),
            class_name=config.class_name if config else None,
            model_type=config.model_type if config else None,
            identifier=choice.identifier if choice else None,
            decided_by=_why(choice, unknown),
            layout=choice.layout if choice else None,
            layouts=choice.known if choice else (),
            rule_files=choice.files() if choice else (),
            config=str(config.path) if config else None,
            quantization=config.quantization if config else None,
            files=tuple(FileSize(str(file), file.stat().st_size) for file in checkpoint.files or _own_files(config)),
            tensors=len(checkpoint.tensors),
            nbytes=checkpoint.nbytes,
            dtypes=_totals(checkpoint.tensors.values()),
            templates=_templates(checkpoint.tensors),
            metadata=dict(checkpoint.metadata),
            notes=(*checkpoint.notes, *ignored_code(opened.folder, config.values if config else {})),
            memory=_memory(opened, choice, asked) if choice and asked else None,
            kept=_kept(opened.kept) if opened.kept else None,
            vision=str(vision_of(config.values, checkpoint.tensors.keys(), str(config.path))) if config else None,
            repaired=_repaired(config, decision),
            loads_as=_loads_as(decision),
        )


def _asked(estimate_memory: bool, details: Foreseen) -> Foreseen | None:
    """Refuse details of an estimate that was not asked for."""
    if not estimate_memory and details != Foreseen():
        raise UsageError(
            "a context, a batch, a dtype or a recipe was given, and no estimate of memory",
            expected="estimate_memory (--estimate-memory) with them",
            field="estimate_memory",
        )
    return details if estimate_memory else None


def _memory(opened: Opened, choice: Choice, asked: Foreseen) -> MemoryNeed:
    from weightloom.runtime.inspecting.foreseeing import foresee

    return foresee(opened, choice, asked)


def _kept(kept: Kept) -> KeptBeside:
    return KeptBeside(
        path=str(kept.path),
        source_layout=kept.note.source_layout,
        source_files=tuple(file.name for file in kept.source.files),
        config="the source's own" if kept.current else "the one beside the weights, which was changed",
        tensors=tuple(kept.names),
        nbytes=kept.path.stat().st_size,
    )


def _decision(opened: Opened, wish: Wish) -> Decision | WeightloomError | None:
    """Say what a load would take it for, or why it would not load; None where the rules alone are asked about."""
    if wish.open_target:
        return None
    try:
        need_mlx()
        from weightloom.plugins.discovery.manager import PluginManager
        from weightloom.runtime.choosing.decision import Asked, decide

        asked = Asked(wish.architecture, wish.task, wish.text_only)
        return decide(opened, asked, PluginManager(), wish.rules, wish.layout)
    except WeightloomError as error:
        return error


def _loads_as(found: Decision | WeightloomError | None) -> LoadsAs:
    if found is None:
        return LoadsAs()
    if isinstance(found, WeightloomError):
        return LoadsAs(refused=" ".join((found.seen, *(f"({each})" for each in (found.hint,) if each))))
    chosen = found.reading.architecture
    return LoadsAs(f"{chosen.source}:{chosen.name}", chosen.task, found.facts)


def _repaired(config: Config | None, found: Decision | WeightloomError | None) -> tuple[str, ...]:
    """Say what of the config is read otherwise than it is written, its fields too where their architecture is known."""
    if config is None:
        return ()
    # Where nothing says what its fields want to be, a plan or a load says why.
    return repair_lines(config, () if found is None or isinstance(found, WeightloomError) else found.reading.repairs)


def _own_files(config: Config | None) -> tuple[Path, ...]:
    """A GGUF model's config is in the file itself."""
    return (config.path,) if config else ()


def _why(choice: Choice | None, unknown: CheckpointError | None) -> str:
    if choice is not None:
        return choice.reason()
    return f"{unknown.seen}; {unknown.expected}" if unknown else ""


def _templates(tensors: Mapping[str, TensorSpec]) -> tuple[Template, ...]:
    """Group tensors by shape of name, dtype and shape; one that is alone keeps its name as it is."""
    found: dict[tuple[str, str, tuple[int, ...]], list[str]] = {}
    for name, spec in tensors.items():
        found.setdefault((shape_text(name), spec.dtype or "", spec.shape), []).append(name)
    return tuple(
        Template(
            names[0] if len(names) == 1 else text,
            len(names),
            dtype,
            shape,
            sum(tensors[name].nbytes for name in names),
        )
        for (text, dtype, shape), names in sorted(found.items())
    )


def _totals(specs: Iterable[TensorSpec]) -> tuple[Total, ...]:
    found: dict[str, list[int]] = {}
    for spec in specs:
        found.setdefault(spec.dtype or "", []).append(spec.nbytes)
    totals = (Total(dtype, len(sizes), sum(sizes)) for dtype, sizes in found.items())
    return tuple(sorted(totals, key=lambda total: (-total.nbytes, total.dtype)))
