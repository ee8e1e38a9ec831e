"""The plan of a conversion: from the tensors of a checkpoint to those of another layout or dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weightloom.engine.errors import UsageError, WeightloomError
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.plan import Plan
from weightloom.engine.planning.build import build_plan
from weightloom.engine.planning.floats import check_floats
from weightloom.engine.planning.fresh import save_plan
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.plugins.architecture import OURS
from weightloom.runtime.adapting.adapter_plan import refuse_unless_taken
from weightloom.runtime.adapting.fusing import Base, Fused, fused
from weightloom.runtime.adapting.losses import AS_DENSE, Loss, LossPolicy
from weightloom.runtime.adapting.wish import Weighted
from weightloom.runtime.choosing.choice import Choice, only_shipped
from weightloom.runtime.choosing.rule_choice import led_on
from weightloom.runtime.configs.installed import installed_architecture
from weightloom.runtime.extras import need_mlx
from weightloom.runtime.inspecting.reading import plan_opened
from weightloom.runtime.opening.layout_record import MLX
from weightloom.runtime.opening.opening import GGUF, Opened
from weightloom.runtime.preparing.casting import casting
from weightloom.runtime.preparing.planner import Form
from weightloom.runtime.preparing.prepare import Prepared
from weightloom.runtime.preparing.quantized_settings import SECTIONS
from weightloom.runtime.quantizing.config_section import written_names
from weightloom.runtime.quantizing.quantized_model import scales_checked
from weightloom.runtime.quantizing.quantized_plan import Packables, Quantized
from weightloom.runtime.quantizing.wish import Quantizing
from weightloom.runtime.saving.order import CANONICAL, ORIGINAL
from weightloom.runtime.surgery.surgery import operated
from weightloom.runtime.surgery.surgery_file import SurgeryFile
from weightloom.runtime.surgery.surgery_module import refuse_unfit


@dataclass(frozen=True)
class ConversionPlan:
    """The plan, the tensors that the layout leaves out, and the dtype that floats were cast to.

    Of adapters that are fused: what rounding takes of each packed parameter's change, and what was set aside.
    `quantized` is what was quantized, None where that was not asked for; `kept_packed` the modules that a vendor packed
    and that still are, by the paths that are written, None where no vendor packed any.
    """

    plan: Plan
    left_out: tuple[str, ...] = ()
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    dtype: str | None = None
    quantized: Quantized | None = None
    kept_packed: Mapping[str, Quantization] | None = None


def conversion_plan(
    opened: Opened,
    choice: Choice,
    layout: str,
    dtype: str | None,
    surgery: SurgeryFile | None = None,
    adapters: Sequence[Weighted] = (),
    losses: LossPolicy = AS_DENSE,
    quantizing: Quantizing | None = None,
) -> ConversionPlan:
    """Plan a conversion.

    What is packed is unpacked where `quantizing` asks for it; `adapters` and then `surgery` act on the parameters,
    before a cast, and a recipe packs what comes of that; ORIGINAL takes none of these. Raises PlanError when the
    checkpoint does not fit its rules and the parameters of the architecture that is installed for it, or what changes
    them does not fit;
    UsageError for a layout that there is not, NotInvertible for one that cannot be written.
    """
    config = choice.config.values if choice.config else {}
    rules = choice.rules()
    if dtype is not None:
        need_mlx()
    if layout == ORIGINAL:
        plan = build_plan(opened.checkpoint, rules, config=config)
        cast = casting(dtype, plan, installed_architecture(config))
        same = build_plan(opened.checkpoint, RuleSet(()))
        return ConversionPlan(cast.by_source(plan).of(same), notes=cast.notes, dtype=cast.dtype)
    form = _form(layout, quantizing)
    plan, target = plan_opened(opened, choice, form)
    _refuse_broken(target.obstacle)
    plan.check()
    known = None if quantizing is None else Packables(quantizing, _prepared(opened, choice, form))
    plan = _looked_at(plan, target.prepared) if known is None else known.unpacked(plan)
    if adapters and target.architecture is not None:
        refuse_unless_taken(target.architecture)
    fusing = fused(Base(plan, only_shipped(choice).rules_in, config), adapters, losses) if adapters else Fused(plan)
    plan = fusing.plan
    if surgery is not None:
        done = operated(plan, surgery, rules.base_model_prefix, config)
        if surgery.prunings:
            refuse_unfit(target.prepared, done)
        plan, config, choice = done.plan, done.config, _by_config(choice, done.config)
    left_out = (*(kept.name for kept in plan.kept), *(name for group in plan.copies for name in group.sources))
    cast = casting(dtype, plan, target.architecture or installed_architecture(config))
    plan = cast.of(plan) if known is None else known.cast(plan, cast)
    packed = None if known is None else known.packed(plan, config)
    plan = plan if packed is None else packed.plan
    vendor = target.packed
    if layout != CANONICAL or _leads_on(target.prepared):
        written = save_plan(_target_rules(choice, layout, target.prepared), plan.params, config)
        vendor, plan = None if vendor is None else written_names(vendor, written), plan.then(written.inverse())
    if layout == MLX:
        check_floats(plan)
    notes = (*fusing.notes, *cast.notes)
    return ConversionPlan(plan, tuple(sorted(left_out)), fusing.losses, notes, cast.dtype, packed, vendor)


def _refuse_broken(obstacle: WeightloomError | None) -> None:
    """Raise what is wrong with packed modules: it would be carried over, or taken for something else."""
    if obstacle is not None and (obstacle.tensor is not None or (obstacle.field or "").startswith(SECTIONS)):
        raise obstacle


def _looked_at(plan: Plan, model: Prepared | None) -> Plan:
    """Give the plan that refuses scales of MLX's packing that are no numbers; a vendor's are looked at by now."""
    return plan if model is None or model.vendor is not None else scales_checked(plan, model.quantized.modules)


def _prepared(opened: Opened, choice: Choice, form: Form) -> Prepared:
    """Give the model whose modules say what can be packed; raises UsageError where none is installed."""
    _, target = plan_opened(opened, choice, form)
    if target.prepared is None:
        raise target.obstacle or UsageError(
            f"{target}: nothing says which modules can be quantized",
            expected="a checkpoint whose architecture is installed",
            hint="see `weightloom arch`, or convert without quantizing",
            file=opened.path,
            field="quantize",
        )
    return target.prepared


def _form(layout: str, quantizing: Quantizing | None) -> Form:
    """Say how modules go on that a vendor packed: files have no place for factors, nor published ones for packing."""
    if quantizing is not None:
        return Form.FLOATS if quantizing.unpack else Form.PACKED
    return {CANONICAL: Form.SHARED, MLX: Form.EXACT}.get(layout, Form.FLOATS)


def _by_config(choice: Choice, values: Mapping[str, Any]) -> Choice:
    return choice if choice.config is None else replace(choice, config=replace(choice.config, values=values))


def _target_rules(choice: Choice, layout: str, model: Prepared | None) -> RuleSet:
    """Give the rules of a layout, to the parameters of the model where it is one that comes with weightloom."""
    if layout not in (*choice.known, CANONICAL):
        written = (name for name in choice.known if name != GGUF)
        raise UsageError(
            f"no layout {layout!r} is known for {choice.identifier or 'a checkpoint without an architecture'}",
            expected=f"one of {', '.join((ORIGINAL, CANONICAL, *written))}",
            field="layout",
        )
    rules = RuleSet() if layout == CANONICAL else only_shipped(choice).rules_in(layout)
    if model is None or model.architecture.source != OURS:
        return rules
    # What was unpacked is floats, whatever its config says.
    said = {name: value for name, value in model.config.items() if model.quantized.modules or name not in SECTIONS}
    return led_on(model.architecture, rules, said)


def _leads_on(model: Prepared | None) -> bool:
    """Say whether a model that comes with weightloom has parameters of another form than the canonical ones."""
    if model is None or model.architecture.source != OURS:
        return False
    return bool(model.architecture.rules.rules) or model.architecture.rewrite_rules is not None
