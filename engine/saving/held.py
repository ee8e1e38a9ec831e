"""The parameters that a save is given, held against those that the plan knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from weightloom.engine.carrier import carried, memory_of, spec_of
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.grouping import grouped_names
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.report import LoadReport
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.program import Program

if TYPE_CHECKING:
    import mlx.core as mx


def with_other_ends(params: Mapping[str, mx.array], report: LoadReport) -> dict[str, mx.array]:
    """Give the parameters with the ends of a tie that were left out; PlanError where two that were given differ."""
    found = dict(params)
    for names in report.tied_names:
        given = [name for name in names if name in params]
        for name in given:
            _check_is_array(name, params[name])
            _check_equal(given[0], name, params)
        found |= {name: params[given[0]] for name in names if given and name not in params}
    return found


def _check_equal(name: str, other: str, params: Mapping[str, mx.array]) -> None:
    first, second = params[name], params[other]
    if first is second or (spec_of(first) == spec_of(second) and memory_of(first) == memory_of(second)):
        return
    raise PlanError(
        f"{name} and {other} are tied, and the arrays given for them differ",
        expected="one array for both, or two equal ones",
        hint="give one of them, or load with the tie switched off (tie_word_embeddings false) to keep both",
        tensor=name,
    )


def as_held(back: Plan, params: Mapping[str, mx.array]) -> Plan:
    """Give the inverse plan for the dtypes that the parameters now have.

    Raises PlanError for a parameter that is lacking, unknown or of another shape: nothing would be lost in
    silence. A float parameter may have become another float type; its tensors are written as that.
    """
    groups = (*back.groups, *back.copies)
    # Not from `back.sources`: with an open target the second end of a tie is in no list of parameters.
    needed = {name: spec for g in groups for name, spec in g.taken}
    _refuse("parameters that are lacking", needed.keys() - set(params))
    _refuse("parameters that the plan has no place for", set(params) - needed.keys() - set(back.sources))
    held = {name: _held(name, spec, params[name]) for name, spec in needed.items()}
    changed = {name: spec for name, spec in held.items() if spec.dtype != needed[name].dtype}
    if not changed:
        return back
    kept = tuple(_recast(group, changed) for group in back.groups)
    copies = tuple(_recast(group, changed) for group in back.copies)
    specs = {n: s for g in (*kept, *copies) for n, s in g.made}
    tensors = {
        name: replace(spec, dtype=specs[name].dtype) if name in specs else spec for name, spec in back.params.items()
    }
    return replace(back, groups=kept, copies=copies, params=tensors)


def _refuse(what: str, names: Iterable[str]) -> None:
    lines = list(grouped_names(sorted(names)))
    if lines:
        raise PlanError(
            "\n".join([f"{what}:", *(f"  {line}" for line in lines)]),
            expected="exactly the parameters that were loaded, under their names",
            tensor=min(names),
        )


def _held(name: str, spec: TensorSpec, array: mx.array) -> TensorSpec:
    """Give the spec that a parameter has now: the label of its carrier, or the float type that it became."""
    _check_is_array(name, array)
    now, wanted = spec_of(array), carried(spec)
    if now == wanted:
        return spec
    plain = spec.dtype is not None and DTYPES[spec.dtype].kind == "float" and DTYPES[spec.dtype].bits >= 16
    if now.shape == wanted.shape and plain and now.dtype in ("F16", "BF16", "F32"):
        return TensorSpec(now.dtype, spec.shape)
    raise PlanError(
        f"{name} is {now}",
        expected=f"{wanted}, as it was loaded",
        hint="give an array of that shape and dtype; a float may become F16, BF16 or F32",
        tensor=name,
    )


def _check_is_array(name: str, array: object) -> None:
    import mlx.core as mx

    if not isinstance(array, mx.array):
        raise PlanError(
            f"{name} is a {type(array).__module__}.{type(array).__name__}",
            expected="an mlx.core.array",
            hint="give mx.array(...) of it",
            tensor=name,
        )


def _recast(group: Group, changed: Mapping[str, TensorSpec]) -> Group:
    if not any(name in changed for name in group.sources):
        return group
    if not group.program.is_structural:
        raise PlanError(
            f"{group.sources[0]} changed its dtype, and its tensors are computed from it",
            expected=f"{group.program.in_specs[0]}",
            tensor=group.sources[0],
        )
    specs = tuple(changed.get(name, spec) for name, spec in group.taken)
    dtypes = {spec.dtype for spec in specs}
    if len(dtypes) > 1:
        shown = ", ".join(f"{name} {spec.dtype}" for name, spec in zip(group.sources[:4], specs, strict=False))
        raise PlanError(
            f"parameters of one tensor have different dtypes now: {shown}",
            expected="one dtype for all that are written together",
            hint="cast all of them, or none",
            tensor=next(name for name in group.sources if name in changed),
            rule=group.rule.title() if group.rule else None,
        )
    fillers = (TensorSpec(specs[0].dtype, spec.shape) for spec in group.program.in_specs[len(specs) :])
    return replace(group, program=Program((*specs, *fillers), group.program.moves))
