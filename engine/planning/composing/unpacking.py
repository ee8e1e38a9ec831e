"""A plan behind another form of the tensors: quantized modules as a file has them, then the model's own rules.

A module's tensors (codes, scales, zero points) are one group. What it becomes (`weight`, `scales`, `biases`) goes
through the model's rules under the file's names, and both together are one plan, so that a value step stands before
the stack or the join that follows it, and the way back is that of every other plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import PlanError
from weightloom.engine.mapping.companions import with_companions
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.ops.chain import Part
from weightloom.engine.plan import Plan
from weightloom.engine.planning.build import build_plan
from weightloom.engine.planning.composing.through import Through
from weightloom.engine.planning.groups import Group, bind
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.program import Program

COMPANIONS = ("scales", "biases", "global_scale")


@dataclass(frozen=True, slots=True)
class Packed:
    """One quantized module: its tensors, by which rule they become others, and those, under the file's names.

    `rule` has a source pattern for each of `sources`, and a target pattern for each of `targets`.
    """

    rule: WeightConverter
    sources: tuple[str, ...]
    targets: tuple[str, ...]


def plan_unpacked(
    ckpt: Checkpoint,
    packed: Sequence[Packed],
    rules: RuleSet | Sequence[Rule],
    params: Mapping[str, TensorSpec] | None = None,
    *,
    config: Mapping[str, Any] | None = None,
) -> Plan:
    """Map a checkpoint of quantized modules to parameters: each module by its own rule, all by the model's.

    Raises PlanError, naming the tensor, for a module whose tensors do not belong together or a name that is there
    already, and RuleError as `build_plan` does.
    """
    return unpacked_checkpoint(ckpt, packed, config or {}).plan(rules, params, config=config)


@dataclass(frozen=True)
class UnpackedCheckpoint:
    """A checkpoint whose modules are unpacked: what there is `between` them and the model's own rules.

    It knows no rules, so that many can be tried on it. `front` has the group of each name that was made, `companions`
    the endings of what belongs to packed words.
    """

    ckpt: Checkpoint
    front: Mapping[str, Group]
    companions: frozenset[str]
    between: Checkpoint

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    def plan(
        self,
        rules: RuleSet | Sequence[Rule],
        params: Mapping[str, TensorSpec] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
    ) -> Plan:
        """Plan by the model's rules; raises as `plan_unpacked` does."""
        ruleset = rules if isinstance(rules, RuleSet) else RuleSet(rules)
        later = build_plan(self.between, with_companions(ruleset, set(self.companions)), params, config=config)
        return Through(self.ckpt, self.front, later, COMPANIONS).plan()


def unpacked_checkpoint(ckpt: Checkpoint, packed: Sequence[Packed], config: Mapping[str, Any]) -> UnpackedCheckpoint:
    """Unpack a checkpoint's modules, each by its own rule; raises PlanError as `plan_unpacked` does."""
    front = unpacked(ckpt.logical, packed, config)
    there = frozenset(end for end in COMPANIONS if any(name.endswith(end) for name in front))
    return UnpackedCheckpoint(ckpt, front, there, Checkpoint.from_specs(_specs(ckpt.logical, front), ckpt.metadata))


def unpacked(
    specs: Mapping[str, TensorSpec], packed: Iterable[Packed], config: Mapping[str, Any]
) -> Mapping[str, Group]:
    """Bind each module's rule to its tensors; gives the group of each name that is made."""
    made: dict[str, Group] = {}
    binder = _Binder(config)
    for each in packed:
        group = binder.group(each, specs)
        made |= dict.fromkeys(group.targets, group)
    return made


@dataclass(frozen=True)
class _Binder:
    """Binds rules; what modules of one shape have alike is worked out once."""

    config: Mapping[str, Any]
    _known: dict[Any, Program] = field(default_factory=dict)

    def group(self, packed: Packed, specs: Mapping[str, TensorSpec]) -> Group:
        taken = tuple(specs[name] for name in packed.sources)
        key = (packed.rule, taken)
        if key not in self._known:
            self._known[key] = self._bound(packed, taken)
        return Group(packed.rule, packed.sources, packed.targets, self._known[key])

    def _bound(self, packed: Packed, taken: tuple[TensorSpec, ...]) -> Program:
        rule = packed.rule
        parts = tuple(Part(text, (spec,)) for text, spec in zip(rule.source_patterns, taken, strict=True))
        try:
            program, made = bind(parts, rule, (None,) * len(rule.target_patterns), self.config)
        except PlanError as error:
            raise PlanError(
                f"{packed.sources[0]}: {error.seen}",
                expected=error.expected,
                hint=error.hint,
                tensor=packed.sources[0],
                rule=rule.title(),
                field=error.field,
            ) from error
        if len(made) != len(packed.targets):
            raise PlanError(
                f"{packed.sources[0]}: the ops make {len(made)} tensors for {len(packed.targets)} targets",
                expected="one for each",
                rule=rule.title(),
            )
        return program


def _specs(specs: Mapping[str, TensorSpec], front: Mapping[str, Group]) -> Mapping[str, TensorSpec]:
    """Give what there is once the modules are unpacked, in the order of the file."""
    groups = {id(group): group for group in front.values()}
    taken = {name for group in groups.values() for name in group.sources}
    first = {group.sources[0]: group for group in groups.values()}
    found: dict[str, TensorSpec] = {}
    for name, spec in specs.items():
        here = dict(first[name].made) if name in first else {} if name in taken else {name: spec}
        twice = next((each for each in here if each in found or (each in specs and each not in taken)), None)
        if name in first and twice is not None:
            raise PlanError(f"{name} is to become {twice}, which is there", expected="one of the two", tensor=twice)
        found |= here
    return found
