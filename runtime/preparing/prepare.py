"""From an opened checkpoint to a module and the plan that fills it; no tensor is read, no parameter computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine import Plan, RuleSet
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.binding import param_specs
from weightloom.plugins.evidence import evidence_of
from weightloom.plugins.manager import PluginManager
from weightloom.plugins.quantized import quantize, widths
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.choosing.layout_seen import find_opened
from weightloom.runtime.choosing.rule_choice import caller_rules, model_rules
from weightloom.runtime.choosing.text_choice import (
    Reading,
    half_rules,
    may_be_half,
    refuse_unserved,
    repaired_reading,
    wanted_half,
    whole_rules,
)
from weightloom.runtime.choosing.text_half import TextHalf
from weightloom.runtime.configs.repairs import with_repairs
from weightloom.runtime.configs.stated_dtype import check_dtypes
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT
from weightloom.runtime.opening.opening import Opened
from weightloom.runtime.preparing.planner import Planner, planner_of
from weightloom.runtime.preparing.quantized_claim import refuse_unquantized
from weightloom.runtime.preparing.quantized_set import QuantizedSet, quantized_set
from weightloom.runtime.preparing.quantized_settings import Settings, paths_in_files, settings_in

if TYPE_CHECKING:
    import mlx.nn as nn


@dataclass(frozen=True)
class Prepared:
    """The architecture that was chosen, its module, the layout that is read, and the plan.

    `config` is what the module was built by: where it is a text model alone (`half`) that model's, and with numbers
    repaired as the plan's report says. `quantized` are the modules that the files hold packed.
    """

    architecture: Architecture
    module: nn.Module
    layout: str
    plan: Plan
    config: Mapping[str, Any]
    half: TextHalf | None = None
    quantized: QuantizedSet = field(default_factory=lambda: QuantizedSet({}))

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def prepare(
    opened: Opened,
    *,
    rules: RuleSet | str | Path | None = None,
    layout: str | None = None,
    architecture: str | None = None,
    manager: PluginManager | None = None,
    text_only: bool | None = None,
) -> Prepared:
    """Choose the architecture, build its module as config and names ask for, and plan.

    `text_only` asks for the text model of a checkpoint of several, or for the whole; by default it is loaded alone
    where nothing serves the whole, and it is all that there is.

    Raises PluginError for a model type that no plugin serves, ConfigError for a config that cannot be.
    """
    read_as = layout or layout_of(opened)
    read = reading(opened, read_as, rules, architecture, manager or PluginManager(), text_only)
    planner = planner_of(opened, read_as)
    module, quantized = _module(read, planner)
    plan = planner.plan(read.rules, param_specs(module), read.config)
    plan = with_repairs(plan, opened.need_config(), read.repairs)
    plan = replace(plan, report=replace(plan.report, notes=(*plan.report.notes, *quantized.notes)))
    return Prepared(read.architecture, module, read_as, plan, read.config, read.half, quantized)


def reading(
    opened: Opened,
    layout: str,
    rules: RuleSet | str | Path | None,
    architecture: str | None,
    manager: PluginManager,
    text_only: bool | None,
) -> Reading:
    """Choose the architecture, and the config and rules that it is read by; raises as `prepare` does."""
    return repaired_reading(_as_it_is(opened, layout, rules, architecture, manager, text_only))


def _as_it_is(
    opened: Opened,
    layout: str,
    rules: RuleSet | str | Path | None,
    architecture: str | None,
    manager: PluginManager,
    text_only: bool | None,
) -> Reading:
    model_type, config = _model_type(opened), opened.need_config()
    check_dtypes(config)
    evidence, first = evidence_of(config.values, opened.checkpoint.tensors.keys()), caller_rules(rules, layout)
    if may_be_half(evidence, manager, text_only):
        whole = whole_rules(find_choice(config, Wish()), layout)
        half = wanted_half(opened, evidence, first + whole, manager, text_only)
        if half is not None:
            found = manager.architecture(half.model_type, architecture)
            return Reading(found, half.config, first + half_rules(half, found, whole, layout), half)
    refuse_unserved(evidence, manager)
    found = manager.architecture(model_type, architecture, evidence)
    return Reading(found, config.values, first + model_rules(found, config.values, layout))


def layout_of(opened: Opened) -> str:
    """Give the layout that is recorded or seen; of a plugin's own model type there is one."""
    choice = find_opened(opened, Wish(), str(opened.path))
    return DEFAULT_LAYOUT if choice is None else choice.layout


def _model_type(opened: Opened) -> str:
    config = opened.need_config()
    if config.model_type is None:
        raise ConfigError(
            "there is no model_type",
            expected="the name of a model family",
            hint="complete config.json",
            file=config.path,
            field="model_type",
        )
    return config.model_type


def _module(read: Reading, planner: Planner) -> tuple[nn.Module, QuantizedSet]:
    """Build the module; the file's names decide what the config leaves open, and which modules are quantized."""
    opened = planner.opened
    open_target = planner.plan(read.rules, config=read.config)
    try:
        module = _built(read, open_target.params.keys())
    except ConfigError as error:
        file = error.file or opened.need_config().path
        raise ConfigError(error.seen, expected=error.expected, hint=error.hint, file=file, field=error.field) from error
    quantized = _quantized(module, open_target, read, planner)
    quantize(module, quantized.modules)
    return module, quantized


def _quantized(module: nn.Module, open_target: Plan, read: Reading, planner: Planner) -> QuantizedSet:
    if planner.unpacked is not None:
        return QuantizedSet(planner.quantized(open_target), planner.notes)
    settings = Settings(settings_in(read.config), paths_in_files(open_target))
    found = quantized_set(open_target.params, settings, widths(module))
    refuse_unquantized(found.modules, read.config, planner.opened)
    return found


def _built(read: Reading, names: Collection[str]) -> nn.Module:
    """Build the module as the config says, and `names` where it leaves something open."""
    found = read.architecture
    config = found.read_config(read.config)
    return found.build(config if found.adapt is None else found.adapt(config, names))
