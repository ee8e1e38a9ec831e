"""What is left of a model after pruning: its module and its files, by the config that goes with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.engine.errors import PlanError, UsageError
from weightloom.engine.show import listed
from weightloom.engine.surgery import Operated
from weightloom.plugins.modules.binding import param_specs
from weightloom.plugins.modules.quantized import quantize, widths
from weightloom.runtime.configs.config import NAME, Config
from weightloom.runtime.configs.config_text import strict_json
from weightloom.runtime.opening.opening import Opened
from weightloom.runtime.preparing.prepare import Prepared
from weightloom.runtime.preparing.quantized_set import quantized_set
from weightloom.runtime.preparing.quantized_settings import Settings, settings_in


def rebuilt(found: Prepared, done: Operated) -> Prepared:
    """Build the module again by the new config; raises PlanError where its parameters are others than the plan's."""
    if found.half is not None:
        raise UsageError(
            "surgery prunes the text model alone of a checkpoint of several",
            expected="a checkpoint of one model",
            hint="prune the whole on disk (weightloom convert --surgery), then load its text model",
            field="surgery",
        )
    names, architecture = done.plan.params, found.architecture
    config = architecture.read_config(done.config)
    if architecture.adapt is not None:
        config = architecture.adapt(config, names.keys())
    module = architecture.build(config)
    quantize(module, quantized_set(names, Settings(settings_in(done.config)), widths(module)).modules)
    wanted = {name: spec.shape for name, spec in param_specs(module).items()}
    made = {name: spec.shape for name, spec in names.items()}
    if wanted != made:
        odd = sorted(name for name in {*wanted, *made} if wanted.get(name) != made.get(name))
        raise PlanError(
            f"after pruning, {listed(odd, 4)} would not fit {architecture.name} ({made.get(odd[0])})",
            expected=f"{wanted.get(odd[0])}, as its module has it by the new config",
            tensor=odd[0],
        )
    return replace(found, module=module, plan=done.plan)


def refuse_unfit(found: Prepared | None, done: Operated) -> None:
    """Raise what `rebuilt` raises of a whole model; nothing is known of an open target, and of a half of several."""
    if found is not None and found.half is None and done.config != found.config:
        rebuilt(found, done)


def with_config(opened: Opened, values: Mapping[str, Any]) -> Opened:
    """Give the same checkpoint with another config, and without what was kept for the way back."""
    old = opened.need_config()
    if old.values == values:
        return opened
    raw = strict_json(values)
    config = Config(old.path, raw, values)
    beside = None if opened.beside is None else config
    files = partial(_side_files, opened.side_files, raw)
    return replace(opened, config=config, beside=beside, side_files=files, kept=None)


def _side_files(before: Callable[[], Mapping[str, bytes | Path]], raw: bytes) -> Mapping[str, bytes | Path]:
    files = {name: content for name, content in before().items() if name != KEPT_NAME}
    return {**files, NAME: raw}
