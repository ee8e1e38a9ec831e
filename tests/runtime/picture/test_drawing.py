"""A picture has every tensor and every parameter once, in threads of the right kind, and says what does not fit."""

from __future__ import annotations

import pytest

from tests.runtime.picture.plans import ends, picture, template, threads
from weightloom.engine import (
    Chunk,
    Concatenate,
    ConversionOp,
    MergeModulelist,
    Rule,
    Transpose,
    WeightConverter,
    WeightRenaming,
)
from weightloom.engine.mapping.claims import Drop, Tie
from weightloom.runtime.picture.picture import Picture

EXPERTS = {f"h.{layer}.experts.{n}.w": (4, 6) for layer in range(3) for n in range(5)}
HALVES = {f"h.{layer}.{half}.w": (4, 6) for layer in range(3) for half in ("one", "two")}


def converter(source: list[str], target: list[str], *ops: ConversionOp) -> WeightConverter:
    return WeightConverter(source, target, ops)


CASES = [
    ("same", {"a.w": (2, 3)}, [], "a.w"),
    ("renamed", {"a.w": (2, 3)}, [WeightRenaming(r"^a\.", "b.")], "b.w"),
    ("reordered", {"a.w": (2, 3)}, [converter([r"a\.w"], ["a.w"], Transpose())], "a.w"),
    ("stacked", EXPERTS, [converter([r"experts\.*.w"], ["experts.w"], MergeModulelist())], "h.*.experts.w"),
    ("joined", HALVES, [converter([r"\.one\.w", r"\.two\.w"], [".both.w"], Concatenate())], "h.*.both.w"),
    ("split", {"a.qk.w": (4, 6)}, [converter([r"qk\.w"], ["q.w", "k.w"], Chunk())], "a.q.w"),
    (
        "chained",
        EXPERTS,
        [converter([r"experts\.*.w"], ["experts.w"], MergeModulelist(), Transpose(1, 2))],
        "h.*.experts.w",
    ),
]


@pytest.mark.parametrize(("kind", "disk", "rules", "target"), CASES, ids=[case[0] for case in CASES])
def test_a_thread_of_each_kind(kind: str, disk: dict[str, tuple[int, ...]], rules: list[Rule], target: str) -> None:
    found = picture(disk, rules)
    (thread,) = found.threads
    assert thread.kind == kind
    assert found.loads and not found.problems
    assert target in ends(found, thread)[1]
    assert sum(found.left[place].count for place in thread.left) == len(disk)


def test_a_stack_says_its_op_its_groups_and_its_rule() -> None:
    rule = converter([r"experts\.*.w"], ["experts.w"], MergeModulelist())
    found = picture(EXPERTS, [rule])
    (thread,), (left,), (right,) = found.threads, found.left, found.right
    assert (thread.groups, thread.ops) == (3, ("MergeModulelist",))
    assert left.boxes == ((((0, 2, 1),), ((0, 4, 1),)),) and left.count == 15
    assert (left.shape, right.shape, right.count) == ((4, 6), (5, 4, 6), 3)
    assert left.nbytes == right.nbytes == 15 * 4 * 6 * 4
    (text,) = [found.rules[step] for step in left.steps]
    assert text.kind == "convert" and "MergeModulelist" in text.text


def test_ops_say_what_is_not_the_usual() -> None:
    rule = converter([r"experts\.*.w"], ["experts.w"], MergeModulelist(1), Transpose(1, 2))
    assert picture(EXPERTS, [rule]).threads[0].ops == ("MergeModulelist(dim=1)", "Transpose(dim0=1, dim1=2)")


def test_a_rename_before_a_converter_is_among_the_steps() -> None:
    rules = [WeightRenaming("^old", "h"), converter([r"experts\.*.w"], ["experts.w"], MergeModulelist())]
    found = picture({name.replace("h.", "old."): shape for name, shape in EXPERTS.items()}, rules)
    assert [found.rules[step].kind for step in found.left[0].steps] == ["rename", "convert"]


def test_what_is_dropped_has_one_end_and_the_rule_and_its_reason() -> None:
    found = picture({"a.w": (2,), "a.position_ids": (4,)}, [Drop("position_ids", why="they are counted")])
    dropped = threads(found)["dropped"]
    assert ends(found, dropped) == (["a.position_ids"], [])
    assert dropped.note == "they are counted"
    (step,) = found.left[dropped.left[0]].steps
    assert (found.rules[step].kind, found.rules[step].why) == ("dropped", "they are counted")
    assert found.threads[-1] is dropped


def test_a_tie_starts_where_its_other_end_does() -> None:
    found = picture({"embed.w": (4, 2)}, [Tie("head.w", "embed.w")], {"embed.w": (4, 2), "head.w": (4, 2)})
    same, tied = threads(found)["same"], threads(found)["tied"]
    assert tied.left == same.left and ends(found, tied)[1] == ["head.w"]
    assert len(found.left) == 1 and "embed.w" in tied.note


def test_a_second_copy_is_tied() -> None:
    both = {"embed.w": (4, 2), "head.w": (4, 2)}
    found = picture(both, [Tie("head.w", "embed.w")], both)
    assert ends(found, threads(found)["tied"]) == (["head.w"], ["head.w"])


def test_missing_unexpected_and_mismatched_come_first() -> None:
    disk = {"a.w": (2, 3), "b.w": (2, 3), **{f"stray.{n}.w": (2,) for n in range(7)}}
    found = picture(disk, [], {"a.w": (2, 3), "b.w": (3, 2), "c.w": (5,)})
    assert not found.loads and found.error is not None
    assert [thread.kind for thread in found.threads] == ["unexpected", "missing", "mismatched", "same"]
    by_kind = threads(found)
    assert ends(found, by_kind["unexpected"]) == (["stray.*.w"], [])
    assert ends(found, by_kind["missing"]) == ([], ["c.w"])
    assert found.right[by_kind["missing"].right[0]].shape == (5,)
    assert found.right[by_kind["mismatched"].right[0]].shape == (3, 2)
    counts = {problem.kind: problem.count for problem in found.problems}
    assert counts == {"missing": 1, "unexpected": 7, "mismatched": 1}
    assert by_kind["mismatched"].note == "F32 [2, 3]; expected F32 [3, 2]"


def test_an_incomplete_group_shows_both_its_ends() -> None:
    disk = {name: shape for name, shape in EXPERTS.items() if name != "h.1.experts.3.w"}
    params = {f"h.{layer}.experts.w": (5, 4, 6) for layer in range(3)}
    found = picture(disk, [converter([r"experts\.*.w"], ["experts.w"], MergeModulelist())], params)
    broken = [thread for thread in found.threads if thread.kind == "incomplete"]
    assert sorted(len(thread.left) for thread in broken) == [0, 1]
    (left,) = [found.left[place] for thread in broken for place in thread.left]
    assert (left.count, left.boxes) == (4, ((((1, 1, 1),), ((0, 2, 1), (4, 4, 1))),))
    assert any("no index 3" in line for problem in found.problems for line in problem.lines)


def test_two_claims_are_ambiguous() -> None:
    found = picture({"a.w": (2,), "b.w": (2,)}, [WeightRenaming("^b", "a")], {"a.w": (2,)})
    assert "ambiguous" in {thread.kind for thread in found.threads}
    assert "ambiguous" in {problem.kind for problem in found.problems}


def accounted(found: Picture) -> tuple[int, int]:
    """Count names on both sides; what is tied is drawn once more from a row that is there."""
    left = {place for thread in found.threads for place in thread.left}
    right = [place for thread in found.threads for place in thread.right]
    assert len(right) == len(set(right))
    return sum(found.left[place].count for place in left), sum(found.right[place].count for place in right)


@pytest.mark.parametrize(("kind", "disk", "rules", "target"), CASES, ids=[case[0] for case in CASES])
def test_nothing_is_lost(kind: str, disk: dict[str, tuple[int, ...]], rules: list[Rule], target: str) -> None:
    found = picture(disk, rules)
    assert accounted(found) == (found.totals.tensors, found.totals.parameters)


def test_names_of_one_template_and_other_shapes_are_rows_of_their_own() -> None:
    found = picture({"h.0.w": (2,), "h.1.w": (2,), "h.2.w": (3,)})
    assert [(template(row), row.count) for row in found.left] == [("h.*.w", 2), ("h.*.w", 1)]
