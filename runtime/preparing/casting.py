"""What float parameters are cast to: as asked, or as the device wants, and never what the family cannot bear.

Rules keep the dtype of single parameters (`keep_dtype`), and an architecture that `keeps_bf16` has no float16. What
was decided, and why, is in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from weightloom.engine import Plan
from weightloom.engine.planning.cast import FLOATS, kept_dtypes, with_dtype
from weightloom.engine.planning.grouping import grouped_names
from weightloom.plugins.architecture import Architecture
from weightloom.runtime.configs.dtype_names import safetensors_dtype
from weightloom.runtime.preparing.device_dtype import Device, device_name, lacks_bf16, this_device

AUTO = "auto"


@dataclass(frozen=True)
class Casting:
    """What is cast: parameters whose dtype is one of `only` become `dtype` (None: nothing is), but those in `kept`.

    `kept` has the rule that keeps each; `notes` say what was decided otherwise than one may think.
    """

    dtype: str | None = None
    only: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    def of(self, plan: Plan) -> Plan:
        """Give a plan of these parameters, or of a part of them, with the casts, and the notes in its report."""
        if self.dtype is None and not self.notes:
            return plan
        cast = plan if self.dtype is None else with_dtype(plan, self.dtype, lambda name: not self._is_cast(plan, name))
        return replace(cast, report=replace(cast.report, notes=(*cast.report.notes, *self.notes)))

    def by_source(self, plan: Plan) -> Casting:
        """Give the same for a plan that keeps tensors as they are in the file; `plan` leads from them to parameters."""
        kept = {
            source: rule
            for group in plan.groups
            for source in group.sources
            for rule in (self.kept[target] for target in group.targets if target in self.kept)
        }
        return replace(self, kept=kept)

    def _is_cast(self, plan: Plan, name: str) -> bool:
        return plan.params[name].dtype in self.only and name not in self.kept


def asked_dtype(dtype: object) -> str | None:
    """Give what is asked for: a float type as safetensors spells it, AUTO, or None; raises UsageError for others."""
    return None if dtype is None else AUTO if str(dtype) == AUTO else safetensors_dtype(str(dtype))


def casting(
    asked: str | None,
    plan: Plan,
    architecture: Architecture | None,
    device: Callable[[], Device] = this_device,
) -> Casting:
    """Decide on the casts of a plan's parameters; `device` says what they will run on, for AUTO alone."""
    if asked is None:
        return Casting()
    if asked == AUTO:
        return _as_the_device_wants(plan, architecture, device())
    if asked == "F16" and architecture is not None and architecture.keeps_bf16:
        why = f"float16 was asked for, which {architecture.name} has no range for: bfloat16 in its place"
        return _with_kept("BF16", ("F32",), plan, why)
    return _with_kept(asked, FLOATS, plan)


def _as_the_device_wants(plan: Plan, architecture: Architecture | None, device: Device) -> Casting:
    count = sum(spec.dtype == "BF16" for spec in plan.params.values())
    if not count:
        return Casting()
    who = device_name(device)
    if not lacks_bf16(device):
        return Casting(notes=(f"bfloat16 stays: {who} gains nothing from float16",))
    if architecture is not None and architecture.keeps_bf16:
        return Casting(notes=(f"bfloat16 stays, though {who} lacks it: {architecture.name} has no range for float16",))
    return _with_kept("F16", ("BF16",), plan, f"bfloat16 is made float16, as {who} lacks it: {count} parameters")


def _with_kept(dtype: str, only: tuple[str, ...], plan: Plan, *notes: str) -> Casting:
    kept = kept_dtypes(plan)
    by_rule: dict[str, list[str]] = {}
    for name, rule in kept.items():
        if plan.params[name].dtype in only and plan.params[name].dtype != dtype:
            by_rule.setdefault(rule, []).append(name)
    said = (f"keep their dtype: {', '.join(grouped_names(by_rule[rule]))} [{rule}]" for rule in sorted(by_rule))
    doubles = [name for name, spec in plan.params.items() if spec.dtype == "F64"]
    left = (f"F64 is not cast: {', '.join(grouped_names(doubles))}",) if doubles else ()
    return Casting(dtype, only, kept, (*notes, *said, *left))
