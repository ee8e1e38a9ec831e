"""Surgery on a model that is loaded or converted: which file says so, and its donors read as the model is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import UsageError
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.plan import Plan
from weightloom.engine.planning.build import build_plan
from weightloom.engine.spec import TensorSpec
from weightloom.engine.surgery import Donor, Operated, operate
from weightloom.engine.surgery.operation import Side
from weightloom.runtime.surgery.surgery_file import FindDonor, SurgeryFile, read_surgery
from weightloom.runtime.surgery.surgery_module import refuse_unfit

if TYPE_CHECKING:
    from weightloom.runtime.inspecting.reading import Planned

VARIABLE = "WEIGHTLOOM_SURGERY"


def asked_surgery(given: object = None, environment: Mapping[str, str] = os.environ) -> SurgeryFile | None:
    """Read the surgery file that was named, else the one of the variable WEIGHTLOOM_SURGERY; None without either.

    Raises UsageError for what is no path, RuleFileError for a file with problems, StorageError as reading does.
    """
    named = environment.get(VARIABLE) if given is None else given
    if named is None or named == "":
        return None
    if not isinstance(named, str | Path):
        raise UsageError(f"surgery is {type(named).__name__}", expected="the path of a surgery file", field="surgery")
    return read_surgery(Path(named))


def operated(plan: Plan, surgery: SurgeryFile, base_model_prefix: str, config: Mapping[str, Any]) -> Operated:
    """Put the operations of a file into a plan that fits; nothing but headers is read.

    A donor is read by the rules that the plan was made by, so that its parameters have the same names. Raises
    PlanError for what does not fit, CheckpointError and StorageError for donors.
    """
    find = cache(_donors(plan, base_model_prefix, config))
    return operate(plan, [*(make(find) for make in surgery.operations), *surgery.prunings], config)


def operated_plan(found: Planned, surgery: SurgeryFile) -> Operated:
    """Do the same with what was opened and planned, and see that what pruning leaves is a model of its config."""
    config = found.config.values if found.config else {}
    done = operated(found.plan, surgery, found.choice.rules().base_model_prefix, config)
    if surgery.prunings:
        refuse_unfit(found.target.prepared, done)
    return done


def _donors(plan: Plan, base_model_prefix: str, config: Mapping[str, Any]) -> FindDonor:
    by_side: dict[Side, Callable[[Checkpoint], Plan]] = {
        Side.FILE: lambda checkpoint: build_plan(checkpoint, RuleSet(())),
        Side.PARAMETER: lambda checkpoint: _as_parameters(checkpoint, plan, base_model_prefix, config),
    }

    def find(path: Path, side: Side) -> Donor:
        return Donor(str(path), by_side[side](Checkpoint.open(path)))

    return find


def _as_parameters(checkpoint: Checkpoint, plan: Plan, base_model_prefix: str, config: Mapping[str, Any]) -> Plan:
    rules = RuleSet(() if plan.resolver is None else plan.resolver.rules, base_model_prefix)
    wanted = {name: TensorSpec(None, spec.shape) for name, spec in plan.params.items()}
    return build_plan(checkpoint, rules, wanted, config=config)
