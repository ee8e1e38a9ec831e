"""Law 8: resolving names by their shape gives what resolving each name on its own gives."""

from __future__ import annotations

from hypothesis import event, example, given

from tests.strategies import NAME_LISTS, RULE_LISTS
from weightloom.engine import (
    Chunk,
    Drop,
    PrefixChange,
    RenameGroup,
    Rule,
    Scope,
    WeightConverter,
    WeightRenaming,
)
from weightloom.engine.resolve import resolve, resolve_each, spelt_out_numbers


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
@given(NAME_LISTS, RULE_LISTS)
def test_by_shape_is_one_by_one(names: list[str], rules: list[Rule]) -> None:
    event(f"by shape: {spelt_out_numbers(rules) is not None}")
    fast, slow = resolve(names, rules)[1], resolve_each(names, rules)[1]
    assert fast == slow


def test_more_numbers_than_there_are_stand_ins() -> None:
    start = ".".join(["1"] * 10_000)
    names = [f"{start}.5.a", f"{start}.6.a"]
    rules = [WeightRenaming("a", "b")]
    assert resolve(names, rules)[1] == resolve_each(names, rules)[1]
