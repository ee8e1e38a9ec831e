"""Law 8: planning by shape of name gives what planning name by name gives."""

from __future__ import annotations

from hypothesis import event, example, given, reject
from hypothesis import strategies as st

from tests.strategies import ANY_NAMES, NAME_LISTS, RULE_LISTS, SOURCES
from weightloom.engine import (
    Checkpoint,
    Chunk,
    Concatenate,
    Drop,
    IndexMap,
    MergeModulelist,
    PrefixChange,
    RenameGroup,
    Rule,
    RuleSet,
    Scope,
    TensorSpec,
    Tie,
    WeightConverter,
    WeightRenaming,
    build_plan,
)
from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.patterns import compile_source
from weightloom.engine.mapping.required import required_text
from weightloom.engine.mapping.shapes import shape_text, shape_texts
from weightloom.engine.planning.build import plan_resolved
from weightloom.engine.planning.resolve import Resolution, Resolved, by_likeness, one_by_one

SPECS = (TensorSpec("F32", (2, 2)), TensorSpec("F32", (2, 3)), TensorSpec("I32", (2, 2)))


@example(["x1²"], [WeightRenaming("x1²", "y")])
@example(["layer٣٤.w"], [WeightRenaming("layer٣", "y")])
@example(["a.1.b", "a.1b"], [WeightRenaming(r"\.b", "")])
@example(["a.1.2.b", "a.3.4.b"], [WeightRenaming(r"(\d+)\.(\d+)", r"\1\2"), WeightRenaming(r"a\.12", "c")])
@example(["a.90000009.b", "a.3.b"], [WeightRenaming("a", "c")])
@example(["a.3.b"], [WeightRenaming("a", "90000009")])
@example(["50%.1.%s", "50%.2.%s"], [WeightRenaming("50%", "%d")])
@example(["a.b0", "a.b00", "a.b12"], [RenameGroup(["a.b12", "a"], ["c", "d"])])
@example(["layers.1.w", "layers.11.w"], [WeightRenaming("w", "v", scope=Scope("layers.1"))])
@example(["1.a", "2.a"], [WeightRenaming("a", "b", scope=Scope("", "1"))])
@example(["3.a.4"], [PrefixChange(prefix_to_add="1")])
@example(["a.1.w", "a.2.w"], [Drop(r"a\.1"), WeightConverter(r"a\.*.w", [r"b\.*.q", r"b\.*.k"], [Chunk(0)])])
@example(["a.1.b", "b.1.b"], [IndexMap(r"b\.{i+1}", "b.{i}")])
@example(["a.1.2.w", "b.1.2.w"], [WeightRenaming(r"b\.1\d", "c"), WeightRenaming(r"a\.(\d+)", r"b.\1")])
@given(NAME_LISTS, RULE_LISTS)
def test_by_shape_is_one_by_one(names: list[str], rules: list[Rule]) -> None:
    found = by_likeness(names, rules)
    event(f"names by shape: {sum(len(one.shape.names) for one in found.alike) * 4 // len(names)} / 4")
    assert by_name(found) == by_name(one_by_one(names, rules))


def test_more_numbers_than_there_are_stand_ins() -> None:
    start = ".".join(["1"] * 10_000)
    names = [f"{start}.5.a", f"{start}.6.a"]
    rules = [WeightRenaming("a", "b")]
    assert by_name(by_likeness(names, rules)) == by_name(one_by_one(names, rules))


def by_name(resolution: Resolution) -> dict[str, Resolved]:
    found = list(resolution.all())
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


MERGE = WeightConverter([r"x\.*.u", r"x\.*.v"], "x.t", [MergeModulelist(), Concatenate(1)])
EXPERTS = [f"{layer}.x.{n}.{end}" for layer in range(2) for n in range(2) for end in "uv"]


@example(EXPERTS, [MERGE], None, [])
@example(EXPERTS, [MERGE], ["0.x.t", "5"], [])
@example([*EXPERTS, "0.x.00.u"], [MERGE], None, [])
@example([*EXPERTS, "0.x.12345678.u"], [MERGE], None, [])
@example(["l.1.a", "l.2.a", "l.one.a"], [WeightRenaming("one", "1"), WeightConverter("a", "b", [Chunk(0)])], None, [])
@example(["1.a", "2.a", "1.b"], [WeightRenaming("a", "b")], None, [])
@example(["1.a", "2.a", "1.b"], [WeightRenaming(r"\d+\.a", "b")], ["b", "1.b"], [])
@example(["head", "embed.1", "embed.2"], [], None, [Tie("^head", "embed.1")])
@example(["head", "model.1.w", "2.w"], [], ["1.w", "2.w", "model.head"], [])
@given(NAME_LISTS, RULE_LISTS, st.none() | st.lists(ANY_NAMES, max_size=8, unique=True), st.just([]))
def test_plans_by_shape_are_plans_one_by_one(
    names: list[str], rules: list[Rule], wanted: list[str] | None, ties: list[Rule]
) -> None:
    checkpoint = Checkpoint.from_specs({name: SPECS[n % 7 % 3] for n, name in enumerate(names)})
    params = None if wanted is None else {name: SPECS[n % 5 % 3] for n, name in enumerate([*wanted, *names[::2]])}
    ruleset = RuleSet([*rules, *ties], "model")
    plan = build_plan(checkpoint, ruleset, params)
    slow = plan_resolved(one_by_one(tuple(checkpoint.tensors), ruleset), checkpoint, ruleset, params, {})
    assert plan == slow
    assert plan.report.hints == slow.report.hints


@given(st.lists(ANY_NAMES, max_size=8))
def test_the_shapes_of_many_names_are_those_of_each(names: list[str]) -> None:
    assert shape_texts(names) == set(map(shape_text, names))


@example("ab{e<=1}", ["xb"])
@given(SOURCES, NAME_LISTS)
def test_a_match_holds_the_required_text(pattern: str, names: list[str]) -> None:
    try:
        compiled = compile_source(pattern, {}, anchored=False)
    except RuleError:
        reject()
    assert all(compiled.required in name for name in names if compiled.search(name))
    assert required_text(pattern) == compiled.required
