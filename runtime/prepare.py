"""From an opened checkpoint to a module and the plan that fills it; no tensor is read, no parameter computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine import Plan, RuleSet, build_plan
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.binding import param_specs
from weightloom.plugins.manager import PluginManager
from weightloom.plugins.quantized import quantize
from weightloom.runtime.choice import DEFAULT_LAYOUT, Wish
from weightloom.runtime.layout_seen import find_opened
from weightloom.runtime.opening import Opened
from weightloom.runtime.quantized_set import quantized_modules
from weightloom.runtime.rule_choice import caller_rules, model_rules

if TYPE_CHECKING:
    import mlx.nn as nn


@dataclass(frozen=True)
class Prepared:
    """The architecture that was chosen, its module, the layout that is read, and the plan."""

    architecture: Architecture
    module: nn.Module
    layout: str
    plan: Plan


def prepare(
    opened: Opened,
    *,
    rules: RuleSet | str | Path | None = None,
    layout: str | None = None,
    architecture: str | None = None,
    manager: PluginManager | None = None,
) -> Prepared:
    """Choose the architecture, build its module as config and names ask for, and plan.

    Raises PluginError for a model type that no plugin serves, ConfigError for a config that cannot be.
    """
    config = opened.need_config()
    found = (manager or PluginManager()).architecture(_model_type(opened), architecture)
    read_as = layout or _layout(opened)
    listed = caller_rules(rules, read_as) + model_rules(found, config.values, read_as)
    module = _module(found, opened, listed)
    plan = build_plan(opened.checkpoint, listed, param_specs(module), config=config.values)
    return Prepared(found, module, read_as, plan)


def _layout(opened: Opened) -> str:
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


def _module(found: Architecture, opened: Opened, rules: RuleSet) -> nn.Module:
    """Build the module; the file's names decide what the config leaves open, and which modules are quantized."""
    values = opened.need_config().values
    open_target = build_plan(opened.checkpoint, rules, config=values)
    config = found.read_config(values)
    if found.adapt is not None:
        config = found.adapt(config, open_target.params.keys())
    module = found.build(config)
    quantize(module, quantized_modules(open_target.params, values))
    return module
