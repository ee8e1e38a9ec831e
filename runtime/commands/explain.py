"""`weightloom explain PATH NAME`: how one name, of either side, is mapped, rule by rule."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from weightloom.runtime.terminal.arguments import add_reading, add_text_only
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome

if TYPE_CHECKING:
    from weightloom.engine.plan import Plan
    from weightloom.engine.planning.describe import Step


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, an index or a file")
    parser.add_argument("name", help="a tensor of the checkpoint, or a parameter")
    add_text_only(parser)
    add_reading(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Explain one name."""
    from weightloom.runtime.choosing.wishes import wish_of
    from weightloom.runtime.inspecting.reading import planned

    with planned(args.path, wish_of(args)) as found:
        plan = found.plan
        steps = plan.explain(args.name)
        tensors, parameters = _sides(plan, args.name)
        data = {
            "command": "explain",
            "path": args.path,
            "name": args.name,
            "tensors": tensors,
            "parameters": parameters,
            "steps": [asdict(step) for step in steps],
        }
        return Outcome(FINE, data, "\n".join(_lines(plan, tensors, parameters, steps)))


def _sides(plan: Plan, name: str) -> tuple[list[str], list[str]]:
    """Give the tensors and the parameters that belong to a name."""
    group = plan.by_source.get(name) or plan.by_target.get(name)
    if group is not None:
        return list(group.sources), list(group.targets)
    tied = next((record.other for record in plan.report.tied if record.parameter == name), None)
    if tied is not None:
        return _sides(plan, tied)[0], [name]
    return ([name], []) if name in plan.sources else ([], [name])


def _lines(plan: Plan, tensors: Sequence[str], parameters: Sequence[str], steps: Sequence[Step]) -> Iterator[str]:
    yield "on disk"
    yield from (f"  {name}  {plan.sources[name]}" for name in tensors)
    yield "parameters"
    yield from (f"  {name}  {plan.params[name]}" if name in plan.params else f"  {name}" for name in parameters)
    if not parameters:
        yield "  (none; it is kept, and saved back as it is)"
    yield "steps"
    yield from (f"  {step}" for step in steps)


EXPLAIN = Command("explain", "show how one tensor or parameter is mapped, rule by rule", add_arguments, run)
