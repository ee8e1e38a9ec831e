"""Plans to packed parameters, and to unpacked ones: another plan behind the first, which all that runs plans runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.planning.lossy import lossy_records
from weightloom.engine.planning.report import LoadReport, Tied
from weightloom.engine.quantizing.quantization import Quantization, part_names
from weightloom.engine.quantizing.steps import Pack, Unpack
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.program import Program


def packed_plan(plan: Plan, wanted: Mapping[str, Quantization]) -> Plan:
    """Give the plan with these float parameters (`X.weight`, or a stack's own name) packed; it has no way back.

    The second end of a tie is packed with the first. Raises PlanError for rows that do not divide into groups.
    """
    made = _made(plan)
    groups = {name: _packing(name, made[name], how) for name, how in wanted.items()}
    tied: list[Tied] = []
    ends: dict[str, TensorSpec] = {}
    for record in plan.report.tied:
        packed = groups.get(record.other)
        for end, other in _ends(record, packed):
            tied.append(replace(record, parameter=end, other=other))
            if packed is not None and record.parameter in plan.params:
                ends[end] = dict(packed.made)[other]
    return _behind(plan, list(groups.values()), tied, ends)


def unpacked_plan(plan: Plan, wanted: Mapping[str, Quantization]) -> Plan:
    """Give the plan with these packed parameters, by the name of the words, as floats.

    Going back, the source's own bytes are taken. Raises PlanError for parts that are not all there.
    """
    groups = [_unpacking(name, how, _made(plan)) for name, how in wanted.items()]
    gone = {part for group in groups for part in group.sources[1:]}
    tied = [record for record in plan.report.tied if record.other not in gone]
    floats = {group.targets[0]: group.program.out_specs[0] for group in groups}
    shared = {record.parameter: floats[record.other] for record in tied if record.other in floats}
    return _behind(plan, groups, tied, {name: spec for name, spec in shared.items() if name in plan.params})


def _packing(name: str, spec: TensorSpec, how: Quantization) -> Group:
    how.check()
    program = Program((spec,), (Pack(0, how, (spec,)),))
    try:
        _ = program.out_specs
    except PlanError as error:
        raise PlanError(error.seen, expected=error.expected, tensor=name, field=error.field) from error
    return Group(None, (name,), part_names(name)[: len(how.parts)], program)


def _unpacking(name: str, how: Quantization, made: Mapping[str, TensorSpec]) -> Group:
    parts = part_names(name)[: len(how.parts)]
    lacking = next((part for part in parts if part not in made), None)
    if lacking is not None:
        raise PlanError(f"{name} is packed and {lacking} is not there", expected=", ".join(parts), tensor=lacking)
    specs = tuple(made[part] for part in parts)
    return Group(None, parts, (name,), Program(specs, (Unpack(0, how, specs),)))


def _ends(record: Tied, packed: Group | None) -> Iterator[tuple[str, str]]:
    """Give the second end of a tie with the first: part by part where the first is packed."""
    if packed is None:
        yield record.parameter, record.other
    else:
        yield from zip(part_names(record.parameter), packed.targets, strict=False)


def _made(plan: Plan) -> dict[str, TensorSpec]:
    return {name: spec for group in plan.groups for name, spec in group.made}


def _behind(plan: Plan, groups: list[Group], tied: list[Tied], ends: Mapping[str, TensorSpec]) -> Plan:
    """Put a plan with these groups behind, with ties and their second ends; all else stays as it is."""
    made, taken = _made(plan), {name for group in groups for name in group.sources}
    same = [Group(None, (name,), (name,), Program((spec,))) for name, spec in made.items() if name not in taken]
    written = {name: spec for group in (*groups, *same) for name, spec in group.made}
    gone = taken | {record.parameter for record in plan.report.tied if record not in tied}
    others = {name: spec for name, spec in plan.params.items() if name not in gone}
    lossy = LoadReport(lossy=tuple(lossy_records(groups)))
    after = plan.then(Plan(made, {**others, **written, **ends}, [*groups, *same], report=lossy))
    report = replace(after.report, tied=tuple(tied))
    return replace(after, report=report, resolver=plan.resolver)
