"""What rounding takes of changes that are fused into packed parameters, and what is done where it takes too much.

The codes of a packed parameter are few: a change that is small beside their distance is rounded away, and the fused
model answers as the base does. So each one is tried first, a parameter at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Literal, get_args

from weightloom.engine.errors import PlanError, UsageError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.composing.part import part_of
from weightloom.engine.quantizing.changing import (
    Block,
    Changing,
    LeftAsFloats,
    PackedWider,
    Repacked,
    as_floats,
    in_blocks,
    rounded_to,
)
from weightloom.engine.quantizing.quantization import AFFINE, AFFINE_BITS, Quantization, part_names
from weightloom.engine.quantizing.refitting import floats_of, packed, refitted
from weightloom.engine.views.program import ValueStep

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.engine.quantizing.refitting import Parts

WhenLost = Literal["dense", "bits", "stop", "keep"]
WHEN_LOST: tuple[WhenLost, ...] = get_args(WhenLost)


@dataclass(frozen=True, slots=True)
class LossPolicy:
    """What is done with a packed parameter where rounding takes `most` of its change, a share, or more.

    "dense" unpacks it, "bits" packs it with as many bits as it takes (dense where none do), "stop" raises, "keep"
    leaves it as it is. With `most` at 1 that is where nothing arrives at all. Raises UsageError for other values.
    """

    when_lost: WhenLost = "dense"
    most: float = 1.0

    def __post_init__(self) -> None:
        if self.when_lost not in WHEN_LOST:
            raise UsageError(f"{self.when_lost!r}", expected=f"one of {', '.join(WHEN_LOST)}", field="when_lost")
        if not 0 < self.most <= 1:
            raise UsageError(f"a share of {self.most}", expected="more than 0, and 1 at most", field="max_loss")


AS_DENSE = LossPolicy()


@dataclass(frozen=True, slots=True)
class Loss:
    """Of one parameter: how it was packed, the share of its change that rounding takes there, and whether none arrives.

    `made` is the form that it has in the end, and `left` the share that is lost in that one.
    """

    parameter: str
    form: str
    share: float
    none_arrives: bool
    made: str
    left: float

    def __str__(self) -> str:
        said = f"{self.parameter}: {self.form}: {self.share:.2%} of the change is lost"
        said += ", none of it arrives" if self.none_arrives else ""
        return said if self.made == self.form else f"{said}; written as {self.made} ({self.left:.2%} lost)"


@dataclass(frozen=True, slots=True)
class Fit:
    """How a parameter is changed, and what that costs."""

    step: Changing
    loss: Loss

    @property
    def form(self) -> Quantization | None:
        """How it is packed in the end; None for floats."""
        if isinstance(self.step, LeftAsFloats):
            return None
        return self.step.wider if isinstance(self.step, PackedWider) else self.step.how


def fits(
    plan: Plan, forms: Mapping[str, Quantization], steps: Mapping[str, Sequence[ValueStep]], policy: LossPolicy
) -> tuple[Fit, ...]:
    """Try the steps of each packed parameter, by name, on what the plan reads; one parameter is held at a time.

    Raises PlanError where the policy is to stop, naming all parameters that lose too much.
    """
    found = tuple(_fit(plan, name, forms[name], tuple(own), policy) for name, own in sorted(steps.items()))
    lost = [fit.loss for fit in found if _too_much(fit.loss, policy)]
    if lost and policy.when_lost == "stop":
        raise PlanError(
            "\n".join(["rounding takes the adapter's changes of packed parameters", *(f"  {each}" for each in lost)]),
            expected=f"less than {policy.most:.0%} of each change lost",
            hint="let these be dense, or have more bits; or load the adapter beside the parameters",
            tensor=lost[0].parameter,
        )
    return found


def _too_much(loss: Loss, policy: LossPolicy) -> bool:
    return loss.none_arrives or loss.share >= policy.most


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """A packed parameter, the steps that change it, and the dtype that it has as floats."""

    name: str
    form: Quantization
    steps: tuple[ValueStep, ...]
    parts: Parts
    dtype: str

    def lost(self, got: Callable[[Block], mx.array]) -> float:
        """Give how far `got` is from what is wanted, as a share of how far that is from what was; 0 for no change."""
        import mlx.core as mx

        whole = left = 0.0
        for block in in_blocks(self.parts, self.form, self.steps):
            whole += float(mx.square(block.wanted - block.before).sum())
            left += float(mx.square(got(block) - block.wanted).sum())
        return sqrt(left / whole) if whole else 0.0

    def again(self) -> Loss:
        """Say what is lost in the form that it had."""
        import mlx.core as mx

        same: list[bool] = []

        def got(block: Block) -> mx.array:
            parts = refitted(block.parts, block.wanted, self.form)
            same.extend(bool(mx.array_equal(one, other)) for one, other in zip(parts, block.parts, strict=True))
            return floats_of(parts, self.form)

        share = self.lost(got)
        return Loss(self.name, str(self.form), share, share > 0 and all(same), str(self.form), share)

    def wider(self, most: float) -> tuple[Changing, str, float] | None:
        """Give the first wider form in which less than `most` is lost; block modes have none."""
        widths = [bits for bits in AFFINE_BITS if bits > self.form.bits and self.form.mode == AFFINE]
        dtype = self.parts[1].dtype
        for form in (Quantization(bits, self.form.group_size) for bits in widths):
            left = self.lost(lambda block, form=form: floats_of(packed(block.wanted, form, dtype), form))  # type: ignore[misc]
            if left < most:
                return PackedWider(0, self.form, self.steps, form), str(form), left
        return None

    def dense(self) -> tuple[Changing, str, float]:
        """Give the step to floats."""
        left = self.lost(lambda block: rounded_to(rounded_to(block.wanted, self.dtype), "F32"))
        return LeftAsFloats(0, self.form, self.steps, self.dtype), self.dtype, left


def _fit(plan: Plan, name: str, form: Quantization, steps: tuple[ValueStep, ...], policy: LossPolicy) -> Fit:
    trial = _tried(plan, name, form, steps)
    loss = trial.again()
    if not _too_much(loss, policy) or policy.when_lost in ("keep", "stop"):
        return Fit(Repacked(0, form, steps), loss)
    wider = trial.wider(policy.most) if policy.when_lost == "bits" else None
    step, made, left = wider or trial.dense()
    return Fit(step, replace(loss, made=made, left=left))


def _tried(plan: Plan, name: str, form: Quantization, steps: tuple[ValueStep, ...]) -> _Trial:
    names = part_names(name)[: len(form.parts)]
    (floats,) = as_floats(form, tuple(plan.params[each].logical() for each in names))
    found = part_of(plan, names).load()
    return _Trial(name, form, steps, tuple(found[each] for each in names), floats.dtype or "F32")
