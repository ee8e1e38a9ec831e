"""How a loaded model is written: by which plan, with which metadata, and with what beside the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine import Plan, build_plan
from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.engine.errors import NotInvertible
from weightloom.engine.planning.fresh import save_plan
from weightloom.engine.saving.shard_plan import ShardPlan
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.choosing.rule_choice import model_rules
from weightloom.runtime.configs.config import NAME as CONFIG_NAME
from weightloom.runtime.loading.widening import widened
from weightloom.runtime.opening.kept import Kept
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT, metadata_in
from weightloom.runtime.opening.opening import GGUF
from weightloom.runtime.opening.quantization_file import needed_beside
from weightloom.runtime.quantizing.config_section import section_of, with_quantization, written_names
from weightloom.runtime.saving.beside_layout import kept_beside
from weightloom.runtime.saving.mlx_config import config_in
from weightloom.runtime.saving.named_settings import modules_made, through, with_names
from weightloom.runtime.saving.order import ORIGINAL

if TYPE_CHECKING:
    from weightloom.runtime.model import LoadedModel


@dataclass(frozen=True)
class Writing:
    """What a save is made of; `metadata` None is the source's own."""

    plan: Plan
    side_files: Mapping[str, bytes | Path]
    metadata: Mapping[str, str] | None = None
    beside: tuple[ShardPlan, ...] = field(default=())


def writing(m: LoadedModel, layout: str) -> Writing:
    """Choose how a model is written in a layout, or ORIGINAL; raises NotInvertible where it cannot be."""
    kept = m.opened.kept
    if layout == ORIGINAL or (kept is not None and layout == kept.note.layout and not m.altered):
        return Writing(m.plan, {**m.side_files(), **needed_beside(m.opened)})
    files = {name: content for name, content in m.side_files().items() if name != KEPT_NAME}
    if kept is not None and layout == kept.note.source_layout and m.packed is None:
        return _recorded(m, kept, files)
    _refuse_factors(m, layout)
    rules = model_rules(m.architecture, m.config, layout)
    plan = widened(save_plan(rules, m.stored, m.config))
    metadata = metadata_in(layout, {} if m.layout == GGUF else m.opened.checkpoint.metadata)
    files |= _packing(m, plan, files.get(CONFIG_NAME))
    return _with_kept(m, layout, Writing(plan, files, metadata))


def _refuse_factors(m: LoadedModel, layout: str) -> None:
    """Refuse modules that a vendor packed, where the layout has no place for them; raises NotInvertible."""
    packed = m.vendor or {}
    lost = sorted(path for path, how in packed.items() if how.scaled or layout == DEFAULT_LAYOUT)
    if lost:
        raise NotInvertible(
            f"{lost[0]} is {packed[lost[0]]}, and layout {layout!r} has no place for that",
            expected='layout="original", which writes what was read',
            hint='load it with quantize="dense", or convert the files, which does that where it must',
            tensor=lost[0],
            field="layout",
        )


def _packing(m: LoadedModel, plan: Plan, config: bytes | Path | None) -> dict[str, bytes | Path]:
    """Give the config that says how modules are packed, by the names that the plan writes."""
    if config is None:
        return {}
    raw = config if isinstance(config, bytes) else config.read_bytes()
    packed = m.vendor if m.packed is None else m.packed
    if packed is None:
        return {CONFIG_NAME: with_names(raw, through(modules_made(m.plan), plan))}
    modules = written_names(packed, plan)
    return {CONFIG_NAME: with_quantization(raw, section_of(modules))}


def _recorded(m: LoadedModel, kept: Kept, files: Mapping[str, bytes | Path]) -> Writing:
    """Write the source that is recorded beside the weights again, from the parameters as they are now."""
    rules = model_rules(m.architecture, m.config, kept.note.source_layout)
    plan = widened(build_plan(kept.source, rules, m.stored, config=m.config))
    own = {} if kept.config is None or m.altered else {CONFIG_NAME: kept.config.raw}
    return Writing(plan, {**files, **own})


def _with_kept(m: LoadedModel, layout: str, made: Writing) -> Writing:
    """Put the config as the layout's readers want it, and what was read and the layout has no room for."""
    choice, config = find_choice(m.opened.config, Wish(layout=m.layout)), made.side_files.get(CONFIG_NAME)
    if layout == DEFAULT_LAYOUT or choice is None or config is None:
        return made
    raw = config_in(layout, choice, config if isinstance(config, bytes) else config.read_bytes())
    files = {**made.side_files, CONFIG_NAME: raw}
    if m.layout == GGUF or m.altered:
        return Writing(made.plan, files, made.metadata)
    read = m.plan.before or m.plan
    back = save_plan(model_rules(m.architecture, m.config, layout), read.params, m.config).inverse()
    shard = kept_beside(m.opened, choice, read.then(back), layout, raw)
    return Writing(made.plan, files, made.metadata, (shard,))
