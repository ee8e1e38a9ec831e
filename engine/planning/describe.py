"""A plan for people and scripts: the steps of one name, the table by shape of name, JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weightloom.engine.errors import PlanError
from weightloom.engine.mapping.claims import Tie
from weightloom.engine.mapping.shapes import shape_text
from weightloom.engine.plan import Plan
from weightloom.engine.planning.groups import Group
from weightloom.engine.spec import TensorSpec

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens to a name: `kind` of rule, names before and after, the rule, its file and line."""

    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    rule: str | None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        rule = f"  [{self.rule}]" if self.rule else ""
        return f"{self.kind}: {_listed(self.before)} -> {_listed(self.after)}{rule}"


@dataclass(frozen=True, slots=True)
class Row:
    """Groups of one shape of name: numbers shown as `*`, how many groups, and what one of them is like."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    count: int
    tensors: int
    ops: tuple[str, ...]
    source_spec: str
    target_spec: str
    nbytes: int
    rule: str | None


def explain(plan: Plan, name: str) -> tuple[Step, ...]:
    """Say how a name, of either side, is mapped; raises PlanError when the plan does not know it."""
    group = plan.by_source.get(name) or plan.by_target.get(name)
    if group is not None:
        return tuple(_group_steps(plan, group, name))
    kept = plan.kept_by_name.get(name)
    if kept is not None:
        return (*_rename_steps(plan, name), _fate(plan, name, kept.reason))
    tied = [record for record in plan.report.tied if record.parameter == name]
    if tied:
        return (*explain(plan, tied[0].other), Step("tie", (tied[0].other,), (name,), tied[0].rule))
    if name in plan.report.missing:
        return (Step("missing", (), (name,), None),)
    raise PlanError(
        f"{name!r} is neither a tensor of the checkpoint nor a parameter",
        expected="a name of either side",
        hint=_nearest(plan, name),
        tensor=name,
    )


def table(plan: Plan) -> tuple[Row, ...]:
    """Give one row for each shape of group, in the order of the parameters."""
    rows: dict[tuple[Any, ...], list[Group]] = {}
    for group in (*plan.groups, *plan.copies):
        key = (_shapes(group.sources), _shapes(group.targets), group.program, group.rule)
        rows.setdefault(key, []).append(group)
    return tuple(_row(sources, targets, groups) for (sources, targets, _, _), groups in rows.items())


def to_json(plan: Plan) -> dict[str, Any]:
    """Give plan and report as JSON values."""
    return {
        "schema": SCHEMA,
        "ok": plan.ok(),
        "invertible": plan.invertible,
        "inverted": plan.inverted,
        "nbytes": plan.nbytes,
        "peak_bytes": plan.peak_bytes,
        "sources": {name: _spec(spec) for name, spec in plan.sources.items()},
        "params": {name: _spec(spec) for name, spec in sorted(plan.params.items())},
        "groups": [_group(group) for group in plan.groups],
        "copies": [_group(group) for group in plan.copies],
        "kept": [{"name": kept.name, "reason": kept.reason} for kept in plan.kept],
        "report": plan.report.to_json(),
    }


def op_names(group: Group) -> tuple[str, ...]:
    """Give the names of the ops of a group's rule, first to last."""
    return tuple(type(op).__name__ for op in getattr(group.rule, "operations", ()))


def _lone_end(plan: Plan, name: str, parameter: str) -> Tie | None:
    """Give the tie by which one end alone is what the parameter is made of."""
    rules = plan.resolver.rules if plan.resolver is not None else ()
    ties = ((rule, rule.other_end(name)) for rule in rules if isinstance(rule, Tie))
    return next((rule for rule, end in ties if end and f".{parameter}".endswith(f".{end}")), None)


def _group_steps(plan: Plan, group: Group, name: str) -> Iterator[Step]:
    starts = group.targets if plan.inverted else group.sources
    if name in starts and len(starts) > 1:
        starts = (name,)
    renamed: list[str] = []
    aside = {record.name for record in plan.report.set_aside}
    for start in starts:
        steps = [] if start in aside else list(_rename_steps(plan, start))
        yield from steps
        renamed.append(steps[-1].after[0] if steps else start)
    ends = group.sources if plan.inverted else group.targets
    if group.rule is not None:
        yield _step("convert", tuple(renamed), ends, group.rule)
    elif tuple(renamed) != ends:
        tie = _lone_end(plan, renamed[0], ends[0])
        yield Step("tie" if tie else "base prefix", tuple(renamed), ends, tie.title() if tie else None)
    yield from (
        Step("set aside", (record.name,), ends, record.rule)
        for record in plan.report.set_aside
        if record.name in starts
    )
    if not renamed or (group.rule is None and tuple(renamed) == ends == tuple(starts)):
        yield Step("as it is", tuple(starts), ends, None)


def _rename_steps(plan: Plan, name: str) -> Iterator[Step]:
    if plan.resolver is not None:
        for number, before, after in plan.resolver.trace(name):
            yield _step(plan.resolver.rules[number].kind, (before,), (after,), plan.resolver.rules[number])


def _step(kind: str, before: tuple[str, ...], after: tuple[str, ...], rule: Any) -> Step:
    place = rule.place
    file, line = (place.file, place.line) if place else (None, None)
    return Step(kind, before, after, rule.title(), file, line)


def _fate(plan: Plan, name: str, reason: str) -> Step:
    rule = next((record.rule for record in plan.report.dropped if record.name == name), None)
    return Step(reason, (name,), (), rule)


def _row(sources: tuple[str, ...], targets: tuple[str, ...], groups: list[Group]) -> Row:
    first = groups[0]
    return Row(
        sources,
        targets,
        len(groups),
        sum(len(group.sources) for group in groups),
        op_names(first),
        str(first.program.in_specs[0]),
        ", ".join(dict.fromkeys(str(spec) for _, spec in first.made)),
        sum(spec.nbytes for group in groups for _, spec in group.made),
        first.rule.title() if first.rule else None,
    )


def _shapes(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(shape_text, names)))


def _spec(spec: TensorSpec) -> dict[str, Any]:
    return {"dtype": spec.dtype, "shape": list(spec.shape)}


def _group(group: Group) -> dict[str, Any]:
    return {
        "sources": list(group.sources),
        "targets": list(group.targets),
        "ops": list(op_names(group)),
        "rule": group.rule.title() if group.rule else None,
    }


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3]) or "(nothing)"
    return shown if len(names) <= 3 else f"{shown}, ... ({len(names)})"


def _nearest(plan: Plan, name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, sorted({*plan.sources, *plan.params}), n=3, cutoff=0.5)
    return f"did you mean {', '.join(near)}?" if near else "see `weightloom plan --json` for all names"
