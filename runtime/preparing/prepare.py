"""From an opened checkpoint to a module and the plan that fills it; no tensor is read, no parameter computed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine import Plan
from weightloom.engine.errors import ConfigError
from weightloom.engine.show import shown
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.modules.binding import param_specs
from weightloom.plugins.modules.quantized import matrices, quantize, widths
from weightloom.runtime.choosing.decision import NOTHING_ASKED, Asked, Decision, decide
from weightloom.runtime.choosing.rule_choice import CallerRules
from weightloom.runtime.choosing.text_choice import Reading
from weightloom.runtime.choosing.text_half import TextHalf
from weightloom.runtime.configs.repairs import with_repairs
from weightloom.runtime.opening.opening import Opened
from weightloom.runtime.preparing.planner import Form, Planner, planner_of
from weightloom.runtime.preparing.quantized_claim import refuse_unquantized
from weightloom.runtime.preparing.quantized_set import QuantizedSet, quantized_set
from weightloom.runtime.preparing.quantized_settings import Settings, names_in_files, sections_apart, settings_in
from weightloom.runtime.preparing.tied_heads import with_tied

if TYPE_CHECKING:
    import mlx.nn as nn

# As many as any model may have, though its file be empty.
_LAYERS = 1024


@dataclass(frozen=True)
class Prepared:
    """The architecture that was chosen, its module, the layout that is read, the plan, and what decided.

    `config` is what the module was built by: where it is a text model alone (`half`) that model's, and with numbers
    repaired as the plan's report says. `quantized` are the modules that the files hold packed, in
    the format of a `vendor` or, None, in MLX's.
    """

    architecture: Architecture
    module: nn.Module
    layout: str
    plan: Plan
    config: Mapping[str, Any]
    decision: Decision
    half: TextHalf | None = None
    quantized: QuantizedSet = field(default_factory=lambda: QuantizedSet({}))
    vendor: str | None = None

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    @property
    def packable(self) -> tuple[str, ...]:
        """The paths of all modules and stacks that can be packed, those that are so already among them."""
        return tuple(sorted({*matrices(self.module), *self.quantized.modules}))


def prepare(
    opened: Opened,
    *,
    rules: CallerRules | None = None,
    layout: str | None = None,
    asked: Asked = NOTHING_ASKED,
    manager: PluginManager | None = None,
    form: Form = Form.PACKED,
) -> Prepared:
    """Choose the architecture, build its module as config and names ask for, and plan.

    `asked` is what the caller says of the choice; `form` how modules go on that a vendor packed. Raises as `decide`
    does, ConfigError for a config that cannot be.
    """
    found = decide(opened, asked, manager or PluginManager(), rules, layout)
    read, planner = found.reading, planner_of(opened, found.layout, form)
    module, quantized = module_by(read, planner, planner.plan(read.rules, config=read.config))
    plan = planner.plan(read.rules, param_specs(module), read.config)
    plan = with_repairs(plan, opened.need_config(), read.repairs)
    plan = replace(plan, report=replace(plan.report, notes=(*plan.report.notes, *quantized.notes)))
    vendor = None if planner.unpacked is None else planner.unpacked.format.name
    return Prepared(read.architecture, module, found.layout, plan, read.config, found, read.half, quantized, vendor)


def module_by(read: Reading, planner: Planner, open_target: Plan) -> tuple[nn.Module, QuantizedSet]:
    """Build the module; names decide what the config leaves open, and which modules are quantized.

    `open_target` is the plan to whatever the rules give. Raises ConfigError as building and quantizing do.
    """
    opened = planner.opened
    try:
        module = built(read.architecture, read.config, open_target.params.keys())
    except ConfigError as error:
        raise _in_the_whole(error, read, opened.need_config().path) from error
    quantized = with_tied(_quantized(module, open_target, read, planner), param_specs(module), open_target)
    quantize(module, quantized.modules)
    return module, quantized


def _in_the_whole(error: ConfigError, read: Reading, config: Path) -> ConfigError:
    """Give the error with the field, and the file, as the whole's config has them."""
    own = error.field or ""
    field = own if read.half is None else read.half.place(own)
    seen = f"{field}{error.seen.removeprefix(own)}" if own and error.seen.startswith(own) else error.seen
    file = error.file or config
    return ConfigError(seen, expected=error.expected, hint=error.hint, file=file, field=field or None)


def _quantized(module: nn.Module, open_target: Plan, read: Reading, planner: Planner) -> QuantizedSet:
    if planner.unpacked is not None:
        return QuantizedSet(planner.quantized(open_target), planner.notes)
    opened = planner.opened
    # Where the source is kept beside the weights, its config speaks of the source's names.
    own = opened.beside.values if opened.kept is not None and opened.beside is not None else read.config
    settings = Settings(settings_in(own), names_in_files(open_target))
    found = quantized_set(open_target.params, settings, widths(module))
    refuse_unquantized(found.modules, read.config, planner.opened)
    return replace(found, notes=(*found.notes, *sections_apart(own)))


def built(architecture: Architecture, config: Mapping[str, Any], names: Collection[str]) -> nn.Module:
    """Build the plain module as the config says, and (canonical) `names` where it leaves something open.

    Raises ConfigError as the architecture does, and for sizes that no array has.
    """
    _refuse_too_many_layers(config, len(names))
    found = architecture.read_config(config)
    adapted = found if architecture.adapt is None else architecture.adapt(found, names)
    try:
        return architecture.build(adapted)
    except OverflowError as error:
        raise ConfigError(
            f"a size that follows from the config is too large for an array: {error}",
            expected="the sizes of the tensors that are there",
            hint="correct config.json",
        ) from error


def _refuse_too_many_layers(config: Mapping[str, Any], tensors: int) -> None:
    """Raise ConfigError for layers far beyond what the file can have, which would take hours to make."""
    layers, most = config.get("num_hidden_layers"), max(tensors, _LAYERS)
    if isinstance(layers, int) and layers > most:
        raise ConfigError(
            f"num_hidden_layers is {shown(layers)}, and the checkpoint has {tensors} tensors",
            expected="the number of layers that are in it",
            hint="correct config.json",
            field="num_hidden_layers",
        )
