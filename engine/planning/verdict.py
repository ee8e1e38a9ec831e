"""Whether a plan would load, and the error that says why not."""

from __future__ import annotations

from collections.abc import Iterator

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.grouping import count_grouped
from weightloom.engine.planning.report import LoadReport

# Of missing and unexpected names in all, and of all other kinds: an error is read on one screen.
_NAMES = 10
_OTHERS = 8


def problem(plan: Plan, strict: bool) -> PlanError | None:
    """Give the error that a load would raise, or None.

    Lenient loading tolerates tensors that nothing wants, and a missing parameter whose module has others. It
    never tolerates wrong shapes, incomplete groups, two claims, nothing loaded, or a module with nothing.
    """
    report = plan.report
    blocking = LoadReport(
        missing=report.missing if strict else tuple(_bare_modules(plan)),
        unexpected=report.unexpected if strict or not plan.groups else (),
        mismatched=report.mismatched,
        incomplete=report.incomplete,
        ambiguous=report.ambiguous,
    )
    lines = list(_lines(blocking))
    if not lines and plan.groups:
        return None
    if not lines and not plan.sources and not plan.params:
        return None
    if not plan.groups:
        lines.insert(0, f"none of {len(plan.sources)} tensors leads to a parameter")
    expected = "each tensor claimed by one rule or parameter, each parameter from one tensor or group"
    hint = "; ".join(report.hints) or "see `weightloom plan` and `weightloom explain` for the rules that acted"
    first = report.mismatched[0].parameter if report.mismatched else next(iter(_names(blocking)), None)
    rules = [*(record.rule for record in report.incomplete), *(record.rule for record in report.mismatched)]
    rule = next((title for title in rules if title), None)
    return PlanError(
        "\n".join(["the checkpoint does not fit", *lines]),
        expected=expected,
        hint=hint,
        tensor=first,
        rule=rule,
        file=_place(plan, rule),
    )


def _place(plan: Plan, title: str | None) -> str | None:
    """Give where the rule is written that a report calls by a title."""
    rules = plan.resolver.rules if plan.resolver is not None and title is not None else ()
    return next((rule.place.exact for rule in rules if rule.place is not None and rule.title() == title), None)


def _lines(report: LoadReport) -> Iterator[str]:
    """Give a few lines of each kind; what is in the file says more than what is not, and comes with more."""
    missing, unexpected = count_grouped(report.missing), count_grouped(report.unexpected)
    shown = min(missing, max(2, _NAMES - unexpected))
    yield from report.lines_of("missing", shown)
    yield from report.lines_of("unexpected", _NAMES - shown)
    kinds = [name for name in ("mismatched", "incomplete", "ambiguous") if getattr(report, name)]
    for kind in kinds:
        yield from report.lines_of(kind, _OTHERS // len(kinds))


def _names(report: LoadReport) -> Iterator[str]:
    yield from (record.name for record in report.ambiguous)
    yield from (name for record in report.incomplete for name in record.parameters)
    yield from report.missing
    yield from report.unexpected


def _bare_modules(plan: Plan) -> Iterator[str]:
    """Missing parameters of modules of which nothing at all was loaded."""
    loaded = {name.rpartition(".")[0] for name in plan.params}
    for name in plan.report.missing:
        module = name.rpartition(".")[0]
        if module not in loaded:
            yield name
