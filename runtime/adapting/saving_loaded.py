"""An adapter of a loaded model, written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine import RuleSet, WeightRenaming
from weightloom.engine.errors import UsageError
from weightloom.runtime.adapting.adapters import ReadAdapter
from weightloom.runtime.adapting.fusing import Base
from weightloom.runtime.adapting.writing import AdapterWritten, Form, is_as_read, reopened, write_adapter
from weightloom.runtime.choosing.rule_choice import model_rules

if TYPE_CHECKING:
    from weightloom.runtime.model import LoadedModel


def save_loaded(m: LoadedModel, adapter: ReadAdapter, target: Path, form: Form, overwrite: bool) -> AdapterWritten:
    """Write an adapter that a model was loaded with; raises as `LoadedModel.save_adapter` does."""
    if m.share is not None:
        raise UsageError(
            "each rank has a part of the adapter",
            expected="a model that is not cut among ranks",
            hint="write it from one process",
            field="adapter",
        )

    half = m.half
    config = m.opened.need_config().values if half is None else half.config
    before = () if half is None else [rule for rule in half.rules if isinstance(rule, WeightRenaming)]

    def rules(layout: str) -> RuleSet:
        after = model_rules(m.architecture, config, layout)
        return RuleSet((*before, *after), after.base_model_prefix)

    base = Base(m.plan, rules, config)
    if not is_as_read(adapter.plan, form):
        return write_adapter(adapter.plan, adapter.arrays, base, m.task, target, form, overwrite)
    found = reopened(adapter.plan)
    with closing(found.source.checkpoint):
        return write_adapter(found, adapter.arrays, base, m.task, target, form, overwrite)
