"""From a plan to its picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from weightloom.engine.errors import WeightloomError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.verdict import problem
from weightloom.engine.spec import TensorSpec
from weightloom.runtime.picture.acting import Acting
from weightloom.runtime.picture.findings import findings
from weightloom.runtime.picture.picture import Picture, Row, Totals
from weightloom.runtime.picture.spelling import spelt
from weightloom.runtime.picture.strands import Strand, strands
from weightloom.runtime.picture.weaving import Side, Woven, weave


def draw(
    plan: Plan,
    title: str,
    *,
    facts: Mapping[str, str],
    wanted: Mapping[str, TensorSpec] | None = None,
    obstacle: WeightloomError | None = None,
) -> Picture:
    """Draw a plan.

    `wanted` are the parameters that it should lead to, in their own order; `obstacle` is why a load would stop before
    any plan.
    """
    error = obstacle or problem(plan, strict=True)
    woven = _woven(plan, wanted)
    acting = Acting(plan)
    left = _with_steps(woven, acting)
    return Picture(
        title,
        facts,
        error is None,
        plan.invertible,
        None if error is None else {name: getattr(error, name) for name in ("seen", "expected", "hint")},
        _totals(plan),
        left,
        woven.right,
        woven.threads,
        acting.rules,
        tuple(findings(plan.report, woven.threads)),
        plan.report.hints,
    )


def _woven(plan: Plan, wanted: Mapping[str, TensorSpec] | None) -> Woven:
    found = tuple(strands(plan))
    targets = [name for strand in found for name in strand.targets]
    # As they are made; as they should be where nothing makes them, or makes them otherwise.
    made = plan.params.keys() - {record.parameter for record in plan.report.mismatched}
    specs = {**plan.params, **(wanted or {}), **{name: plan.params[name] for name in made}}
    tensors = _tensors(plan)
    return weave(found, _side(tensors, tensors), _side(targets, specs, wanted or _by_source(plan)))


def _tensors(plan: Plan) -> Mapping[str, TensorSpec]:
    """Give the tensors without their places on disk, which are looked up one by one."""
    return plan.sources if plan.inverted or plan.checkpoint is None else plan.checkpoint.logical


def _side(names: Iterable[str], specs: Mapping[str, TensorSpec], order: Iterable[str] | None = None) -> Side:
    return Side(spelt(names), specs, {name: place for place, name in enumerate(order or specs)})


def _by_source(plan: Plan) -> Iterable[str]:
    """Give the parameters in the order of the tensors that they are made of: an open target has none of its own."""
    by_source = plan.by_source
    groups = dict.fromkeys(id(by_source[name]) for name in plan.sources if name in by_source)
    known = {id(group): group for group in by_source.values()}
    return [target for key in groups for target in known[key].targets]


def _with_steps(woven: Woven, acting: Acting) -> tuple[Row, ...]:
    of_row: dict[int, Strand] = {}
    for strand, thread in zip(woven.strands, woven.threads, strict=True):
        for place in thread.left:
            of_row.setdefault(place, strand)
    rows = zip(woven.left, woven.left_names, strict=True)
    return tuple(replace(row, steps=acting.on(name, of_row[place])) for place, (row, name) in enumerate(rows))


def _totals(plan: Plan) -> Totals:
    return Totals(
        len(plan.sources),
        sum(spec.nbytes for spec in _tensors(plan).values()),
        len(plan.params),
        plan.nbytes,
        plan.peak_bytes,
    )
