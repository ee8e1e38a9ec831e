"""How a checkpoint is planned: by rules alone, or behind the format in which a vendor packs its modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine import Plan, RuleSet, TensorSpec, WeightConverter, build_plan
from weightloom.engine.errors import ConfigError, WeightloomError
from weightloom.engine.mapping.claims import KeepDtype
from weightloom.engine.mapping.patterns import compile_source
from weightloom.engine.planning.composing.unpacking import UnpackedCheckpoint, unpacked_checkpoint
from weightloom.plugins.discovery.format_manager import FormatManager, NotStoredSoError
from weightloom.plugins.quantization import SECTION, PackedModule, QuantizationFormat, Stored, Unpacking
from weightloom.runtime.opening.layout_record import MLX
from weightloom.runtime.opening.opening import GGUF, Opened
from weightloom.runtime.opening.quantization_file import quantization_section

if TYPE_CHECKING:
    from weightloom.plugins.layers.packing import Quantization
    from weightloom.runtime.choosing.choice import Choice


class Form(Enum):
    """How a vendor's packed modules go on: packed, as MLX does here; packed as others know it too; so, but with the
    same numbers or else as floats; or as floats.
    """

    PACKED = "packed"
    SHARED = "shared"
    EXACT = "exact"
    FLOATS = "floats"


@dataclass(frozen=True)
class Unpacked:
    """The format that a checkpoint is in, what shows it, and what it makes of the modules."""

    format: QuantizationFormat
    evidence: str
    made: Unpacking

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


@dataclass(frozen=True)
class Planner:
    """Plans an opened checkpoint; `unpacked` None where MLX, or nobody, packed its modules."""

    opened: Opened
    unpacked: Unpacked | None = None
    _last: list[tuple[Mapping[str, Any], UnpackedCheckpoint]] = field(default_factory=list, compare=False, repr=False)

    def plan(
        self, rules: RuleSet, params: Mapping[str, TensorSpec] | None = None, config: Mapping[str, Any] | None = None
    ) -> Plan:
        """Plan as `build_plan` and `plan_unpacked` do."""
        checkpoint = self.opened.checkpoint
        if self.unpacked is None:
            return build_plan(checkpoint, rules, params, config=config)
        rules = RuleSet((*self.unpacked.made.rules, *rules), rules.base_model_prefix)
        return self._behind(self.unpacked.made, config or {}).plan(rules, params, config=config)

    def _behind(self, made: Unpacking, config: Mapping[str, Any]) -> UnpackedCheckpoint:
        """Unpack the modules once for all rules that are planned by one config."""
        if not self._last or self._last[0][0] != config:
            packed = [each.packed for each in made.modules]
            self._last[:] = [(config, unpacked_checkpoint(self.opened.checkpoint, packed, config))]
        return self._last[0][1]

    @property
    def notes(self) -> tuple[str, ...]:
        """Say which format it is, and what the format remarks."""
        if self.unpacked is None:
            return ()
        found = self.unpacked
        return (f"quantized as {found.format.name} ({found.evidence})", *found.made.notes)

    def quantized(self, plan: Plan) -> dict[str, Quantization]:
        """Say how each module is packed that the format leaves packed, by its path; `plan` is to an open target.

        Raises ConfigError, naming two of them, where the parts of a parameter are packed in different ways.
        """
        if self.unpacked is None:
            return {}
        known = {name: each.how for each in self.unpacked.made.modules for name in each.packed.sources}
        for record in plan.report.mismatched:
            _agreed(record.parameter, record.sources, known)
        found: dict[str, Quantization] = {}
        for group in plan.groups:
            how = _agreed(group.targets[0], group.sources, known)
            if how is not None:
                found |= dict.fromkeys(filter(None, map(_scales_of, group.targets)), how)
        return found


def _agreed(parameter: str, sources: Sequence[str], known: Mapping[str, Quantization | None]) -> Quantization | None:
    """Give how all parts of a parameter are packed; raises ConfigError, naming two parts, where they differ."""
    if not any(name in known for name in sources):
        return None
    first = sources[0]
    other = next((name for name in sources if known.get(name) != known.get(first)), None)
    if other is not None:
        apart = " and ".join(f"{each} ({_said(known.get(each))})" for each in (first, other))
        raise ConfigError(
            f"{parameter} is made of {apart}",
            expected="parts that are packed alike, or none that is packed",
            hint="load it dequantized",
            field=SECTION,
        )
    return known.get(first)


def _said(how: Quantization | None) -> str:
    return "not packed" if how is None else str(how)


def _scales_of(name: str) -> str | None:
    """Give the path of the module or stack whose scales a parameter is."""
    ends = (".scales", "_scales")
    return next((name.removesuffix(end) for end in ends if name.endswith(end)), None)


def named_by_rules(planner: Planner, choice: Choice) -> bool:
    """Say whether the rules of a family's layouts speak of the tensors of packed modules: then they take them as is."""
    if planner.unpacked is None:
        return False
    rules = tuple(rule for layout in choice.known for rule in choice.rules_in(layout))
    made = {
        text.removeprefix("^") for rule in rules if isinstance(rule, WeightConverter) for text in rule.target_patterns
    }
    ends = tuple(text for text in made if not text.endswith(".weight"))
    beside = tuple(rule for rule in rules if isinstance(rule, KeepDtype))
    packed = (module.packed for module in planner.unpacked.made.modules)
    return any(
        (each.sources[0] not in each.targets and each.sources[0].endswith(ends))
        or any(rule.selects(name) for rule in beside for name in each.sources[1:])
        for each in packed
    )


def scales_by_rules(opened: Opened, choice: Choice) -> bool:
    """Say whether rules of a family's layouts take or make scales of the checkpoint: then no format need know them."""
    scales = [name for name in opened.checkpoint.logical if "_scale" in name.rpartition(".")[2]]
    rules = [rule for layout in choice.known for rule in choice.rules_in(layout) if isinstance(rule, WeightConverter)]
    patterns = [compile_source(text, {}, anchored=False) for rule in rules for text in rule.source_patterns]
    ends = tuple(text.removeprefix("^") for rule in rules for text in rule.target_patterns)
    return any(name.endswith(ends) or any(pattern.search(name) for pattern in patterns) for name in scales)


def planner_of(opened: Opened, layout: str, form: Form = Form.PACKED, formats: FormatManager | None = None) -> Planner:
    """Find the format of a checkpoint's packed modules, and have them in a form.

    Raises ConfigError for a quant_method that nothing serves or a section that cannot be carried out, PlanError for
    a module whose tensors do not belong together, PluginError where several formats know the checkpoint; as
    `quantization_section` does.
    """
    config = opened.config.values if opened.config else {}
    if layout in (GGUF, MLX) or isinstance(config.get("quantization"), Mapping):
        return Planner(opened)
    section = quantization_section(opened)
    stored = Stored(section.values, opened.checkpoint.logical)
    try:
        found = (formats or FormatManager()).find(stored)
        if found is None:
            return Planner(opened)
        return Planner(opened, Unpacked(*found, _in_form(found[0], stored, form)))
    except NotStoredSoError as error:
        raise NotStoredSoError(
            error.seen, expected=error.expected, hint=error.hint, file=section.file, field=error.field
        ) from error
    except ConfigError as error:
        raise _in_file(error, section.file) from error


def _in_form(found: QuantizationFormat, stored: Stored, form: Form) -> Unpacking:
    made = found.unpack(stored, form is Form.FLOATS)
    if form not in (Form.SHARED, Form.EXACT):
        return made
    floats = {each.packed.sources: each for each in found.unpack(stored, True).modules}
    modules = (m if _goes_on(m, form) else floats[m.packed.sources] for m in made.modules)
    return replace(made, modules=tuple(modules))


def _goes_on(module: PackedModule, form: Form) -> bool:
    """Say whether a module stays packed: nobody else knows factors of rows."""
    factors = module.how is not None and module.how.scaled
    return not factors and not (module.rounded and form is Form.EXACT)


def _in_file(error: ConfigError, file: Path) -> WeightloomError:
    return ConfigError(error.seen, expected=error.expected, hint=error.hint, file=file, field=error.field)
