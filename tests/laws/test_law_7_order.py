"""Law 7: the order of files, keys and dict entries changes nothing."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.laws.disk import layouts, write_files
from tests.laws.worlds import check_values, worlds
from tests.strategies import ANY_NAMES, NAME_LISTS, RULE_LISTS, share
from weightloom.engine import Checkpoint, Rule, RuleSet, TensorSpec, WeightConverter, build_plan
from weightloom.engine.ops import Transpose

SPECS = (TensorSpec("F32", (2, 2)), TensorSpec("F32", (2, 3)), TensorSpec("I32", (2, 2)))


@given(st.data(), NAME_LISTS, RULE_LISTS, st.lists(ANY_NAMES, max_size=8, unique=True))
def test_plans_do_not_depend_on_the_order_of_names(
    data: st.DataObject, names: list[str], rules: list[Rule], wanted: list[str]
) -> None:
    specs = {name: SPECS[n % len(SPECS)] for n, name in enumerate(names)}
    params = {name: SPECS[n % 2] for n, name in enumerate([*names[::2], *wanted])}
    shuffled = {name: specs[name] for name in data.draw(st.permutations(names))}
    turned = {name: params[name] for name in data.draw(st.permutations(sorted(params)))}
    for target, other in ((None, None), (params, turned)):
        plan = build_plan(Checkpoint.from_specs(specs), RuleSet(rules), target)
        again = build_plan(Checkpoint.from_specs(shuffled), RuleSet(rules), other)
        assert (plan.groups, plan.copies, plan.kept) == (again.groups, again.copies, again.kept)
        assert plan.report == again.report
        assert plan.report.hints == again.report.hints
        assert plan.params == again.params


@share(0.3)
@given(st.data())
def test_files_of_any_layout_give_the_same_parameters(data: st.DataObject) -> None:
    world = data.draw(worlds())
    plans = []
    for _ in range(2):
        files = data.draw(layouts(world.tensors))
        with TemporaryDirectory() as place:
            write_files(Path(place), files)
            opened = (
                Checkpoint.open(place)
                if "model.safetensors.index.json" in files
                else Checkpoint.from_files(Path(place) / name for name in data.draw(st.permutations(sorted(files))))
            )
            with opened as checkpoint:
                plan = world.plan(checkpoint)
                check_values(world, plan.load(threads=1))
                plans.append(plan)
    first, second = plans
    assert (first.groups, first.copies, first.kept) == (second.groups, second.copies, second.kept)


def test_the_order_of_optional_patterns_does_not_matter() -> None:
    def plan(optional: list[str]) -> object:
        rule = WeightConverter(["a", "b", "c"], ["x"], [Transpose()], optional=optional)
        return build_plan(Checkpoint.from_specs({"l.a": SPECS[0]}), RuleSet([rule])).to_json()

    assert plan(["b", "c"]) == plan(["c", "b"])
