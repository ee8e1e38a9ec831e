"""Law 2: nothing is lost, nothing is invented. Each tensor and each parameter has exactly one fate."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from tests.laws.disk import layouts, write_files
from tests.laws.worlds import worlds
from tests.strategies import ANY_NAMES, NAME_LISTS, RULE_LISTS, share
from weightloom.engine import (
    Checkpoint,
    Chunk,
    MergeModulelist,
    Plan,
    Rule,
    RuleSet,
    SplitModulelist,
    TensorSpec,
    WeightConverter,
    WeightRenaming,
    build_plan,
)

SPEC = TensorSpec("F32", (2, 2))


def check_partition(plan: Plan, tensors: set[str], params: set[str] | None) -> None:
    groups = (*plan.groups, *plan.copies)
    fates = Counter(name for group in groups for name in group.sources)
    fates.update(kept.name for kept in plan.kept)
    assert fates == Counter(dict.fromkeys(tensors, 1))
    report = plan.report
    made = Counter(name for group in plan.groups for name in group.targets)
    made.update(record.parameter for record in report.tied)
    made.update(report.missing)
    assert set(made.values()) <= {1}
    if params is not None:
        assert set(made) == params
    reasons = Counter(kept.reason for kept in plan.kept)
    assert reasons["dropped"] == len(report.dropped)
    assert reasons["unexpected"] == len(report.unexpected)
    assert set(reasons) <= {"dropped", "unexpected", "incomplete", "mismatched", "ambiguous"}
    if reasons["incomplete"]:
        assert report.incomplete or report.ambiguous
    if reasons["mismatched"]:
        assert report.mismatched
    if reasons["ambiguous"]:
        assert report.ambiguous
    assert {record.name for record in report.dropped} == {k.name for k in plan.kept if k.reason == "dropped"}


@example(["a"], [WeightConverter("a", ["b", "b"], [Chunk(0)])], None)
@example(["a", "b"], [WeightRenaming("a", "b")], None)
@example(["a.0", "a.00"], [WeightConverter(r"a\.*", "b", [MergeModulelist()])], ["b"])
@example(["a"], [WeightConverter("a", r"b\.*", [SplitModulelist()])], ["b.0"])
@given(NAME_LISTS, RULE_LISTS, st.one_of(st.none(), st.lists(ANY_NAMES, max_size=8, unique=True)))
def test_each_has_one_fate_whatever_the_rules(names: list[str], rules: list[Rule], wanted: list[str] | None) -> None:
    params = None if wanted is None else dict.fromkeys([*wanted, *names[::2]], SPEC)
    plan = build_plan(Checkpoint.from_specs(dict.fromkeys(names, SPEC)), RuleSet(rules, "model"), params)
    check_partition(plan, set(names), None if params is None else set(params))
    str(plan.report)
    plan.to_json()
    plan.table()
    for name in (*names, *(params or ())):
        assert plan.explain(name)


@share(0.3)
@given(st.data())
def test_each_has_the_fate_that_the_world_says(data: st.DataObject) -> None:
    world = data.draw(worlds())
    files = data.draw(layouts(world.tensors))
    with TemporaryDirectory() as place, Checkpoint.open(write_files(Path(place), files)) as checkpoint:
        plan = world.plan(checkpoint)
        check_partition(plan, set(world.tensors), set(world.params) if world.closed else None)
        assert {record.name for record in plan.report.dropped} == world.dropped
        assert {name for group in plan.copies for name in group.sources} == world.copies
        assert plan.params == {name: each.spec for name, each in world.params.items()}
        for shadowed in checkpoint.shadowed:
            assert world.tensors[shadowed.name].spec == checkpoint.tensors[shadowed.name].logical()
