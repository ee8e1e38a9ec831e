"""Open a checkpoint with its config and its rules, and plan it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import ConfigError, MissingExtra
from weightloom.plugins.judging.fitting import UnfitError
from weightloom.runtime.choosing.choice import Choice, Wish, find_choice
from weightloom.runtime.choosing.layout_seen import choose_opened, find_opened
from weightloom.runtime.choosing.text_half import text_section
from weightloom.runtime.configs.config import Config
from weightloom.runtime.configs.repairs import with_repairs
from weightloom.runtime.extras import need_mlx
from weightloom.runtime.opening.opening import Opened, open_path

if TYPE_CHECKING:
    import mlx.nn as nn

    from weightloom.engine.plan import Plan
    from weightloom.engine.quantizing.quantization import Quantization
    from weightloom.plugins.architecture import Architecture
    from weightloom.runtime.preparing.planner import Form
    from weightloom.runtime.preparing.prepare import Prepared


@dataclass(frozen=True, slots=True)
class Target:
    """Whose parameters a plan leads to, in words; `obstacle` is why a load would stop before any plan.

    `prepared` is the model that has them, None for an open target. `packed` are the modules that a vendor packed and
    that still are, None where no vendor packed any.
    """

    text: str
    obstacle: ConfigError | UnfitError | None = None
    prepared: Prepared | None = None
    packed: Mapping[str, Quantization] | None = None

    @property
    def architecture(self) -> Architecture | None:
        """The architecture that is installed for them."""
        return None if self.prepared is None else self.prepared.architecture

    @property
    def module(self) -> nn.Module | None:
        """The module that it built."""
        return None if self.prepared is None else self.prepared.module

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Planned:
    """A checkpoint, what decided on its rules, the plan, and whose parameters it leads to."""

    checkpoint: Checkpoint
    config: Config | None
    choice: Choice
    plan: Plan
    target: Target


@contextmanager
def planned(path: str, wish: Wish) -> Iterator[Planned]:
    """Open and plan a checkpoint; it is closed at the end. Reads headers only.

    The target is the parameters of the architecture that is installed for its model type; else, and where its
    module cannot be built from the config, it is open, and `target` says why. Raises CheckpointError, RuleError,
    UsageError and StorageError as opening, choosing and planning do.
    """
    with open_path(path) as opened:
        choice = _text_choice(opened, wish, path) or choose_opened(opened, wish, path)
        plan, target = plan_opened(opened, choice)
        yield Planned(opened.checkpoint, opened.config, choice, plan, target)


def _text_choice(opened: Opened, wish: Wish, path: str) -> Choice | None:
    """Choose by the text model's type where it alone is asked for and nothing is known of the whole; else None."""
    config = opened.config
    if not wish.text_only or config is None or find_opened(opened, wish, path) is not None:
        return None
    section = text_section(config.values)
    own = config.values[section].get("model_type") if section else None
    return find_choice(config, replace(wish, model_type=own)) if isinstance(own, str) else None


def plan_opened(opened: Opened, choice: Choice, form: Form | None = None) -> tuple[Plan, Target]:
    """Give the plan of an opened checkpoint and what its target is; raises PluginError for a clash of plugins.

    `form` is how modules go on that a vendor packed; without one an open target has their tensors as they are.
    """
    known = _with_architecture(opened, choice, form)
    if isinstance(known, tuple):
        return known
    plan, packed = _open_plan(opened, choice, None if known.obstacle else form)
    plan = plan if opened.config is None else with_repairs(plan, opened.config)
    return plan, replace(known, text=f"open: {known}", packed=packed)


def _open_plan(opened: Opened, choice: Choice, form: Form | None) -> tuple[Plan, Mapping[str, Quantization] | None]:
    """Plan by the rules alone; formats are looked for only where one may be asked to unpack."""
    config = opened.config.values if opened.config else None
    if form is None:
        from weightloom.engine.planning.build import build_plan

        return build_plan(opened.checkpoint, choice.rules(), config=config), None
    from weightloom.plugins.discovery.format_manager import NotStoredSoError
    from weightloom.runtime.preparing.planner import Planner, named_by_rules, planner_of, scales_by_rules

    try:
        planner = planner_of(opened, choice.layout, form)
    except NotStoredSoError:
        if not scales_by_rules(opened, choice):
            raise
        planner = Planner(opened)
    planner = Planner(opened) if named_by_rules(planner, choice) else planner
    plan = planner.plan(choice.rules(), config=config)
    return plan, None if planner.unpacked is None else planner.quantized(plan)


def _with_architecture(opened: Opened, choice: Choice, form: Form | None) -> tuple[Plan, Target] | Target:
    """Plan against an architecture's parameters; or say why there are none to plan against."""
    wish = choice.wish
    if wish.open_target or (wish.model_type is not None and not wish.text_only):
        return Target("whatever the rules give, as asked")
    config = opened.config
    model_type, class_name = (config.model_type, config.class_name) if config else (None, None)
    if model_type is None and class_name is None:
        return Target("no model_type says whose parameters")
    from weightloom.plugins.discovery.manager import PluginManager

    manager = PluginManager()
    if model_type is not None and manager.find(model_type) is None and not wish.text_only:
        inner = "; --text-only plans its text model" if text_section(opened.need_config().values) else ""
        return Target(f"no architecture for {model_type!r} is installed{inner}")
    try:
        need_mlx()
        from weightloom.runtime.choosing.decision import Asked
        from weightloom.runtime.preparing.prepare import prepare

        asked = Asked(wish.architecture, wish.task, wish.text_only)
        from weightloom.runtime.preparing.planner import Form

        how = form or Form.PACKED
        found = prepare(opened, rules=wish.rules, layout=choice.layout, asked=asked, manager=manager, form=how)
    except UnfitError as error:
        if wish.architecture is not None or wish.task is not None:
            raise
        return Target(f"not those of an installed architecture: {error.seen}", error)
    except (ConfigError, MissingExtra) as error:
        text = f"not those of the architecture for {model_type or class_name!r}, which cannot be built: {error.seen}"
        return Target(text, error if isinstance(error, ConfigError) else None)
    classes = found.architecture.class_names
    by_name = wish.architecture is not None or wish.task is not None or found.half is not None
    if not by_name and class_name is not None and classes and class_name not in classes:
        return Target(f"not those of {found.architecture.name}, which builds {', '.join(classes)} and no {class_name}")
    alone = "" if found.half is None else f", the text model alone, by {found.half.field}"
    text = f"the parameters of {found.architecture.name} ({found.architecture.source}){alone}"
    packed = None if found.vendor is None else found.quantized.modules
    return found.plan, Target(text, prepared=found, packed=packed)
