"""Index arithmetic: forms, captures beside them, offsets, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine import (
    Checkpoint,
    IndexMap,
    NotInvertible,
    RenameGroup,
    RuleError,
    Scope,
    TensorSpec,
    WeightRenaming,
    build_plan,
    save_plan,
)

ATTENTION = IndexMap(r"layers\.{2i}\.mixer\.(weight|bias)", r"layers.{i}.self_attn.\1")
MLP = IndexMap(r"layers\.{2i+1}\.mixer\.(weight|bias)", r"layers.{i}.mlp.\1")
SPEC = TensorSpec("BF16", (2,))


def names_of(plan: object) -> dict[str, str]:
    return {group.sources[0]: group.targets[0] for group in plan.groups}  # type: ignore[attr-defined]


def test_pairs_of_blocks_collapse_into_layers() -> None:
    names = [f"backbone.layers.{n}.mixer.{kind}" for n in range(24) for kind in ("weight", "bias")]
    rules = [ATTENTION, MLP]
    plan = build_plan(Checkpoint.from_specs(dict.fromkeys(names, SPEC)), rules)
    expected = {
        f"backbone.layers.{n}.mixer.{kind}": f"backbone.layers.{n // 2}.{('self_attn', 'mlp')[n % 2]}.{kind}"
        for n in range(24)
        for kind in ("weight", "bias")
    }
    assert names_of(plan) == expected
    fresh = save_plan(rules, dict.fromkeys(expected.values(), SPEC))
    assert names_of(fresh) == expected


def test_what_the_captures_do_not_take_stays() -> None:
    assert ATTENTION.rewrite("layers.2.mixer.scale") is None
    assert ATTENTION.rewrite("layers.3.mixer.weight") is None
    assert ATTENTION.rewrite("layers.4.mixer.bias") == "layers.2.self_attn.bias"


def test_captures_may_change_places_with_forms() -> None:
    rule = IndexMap(r"(\w+)\.{i}\.(a|b(c))\.{3j+1}", r"\2.{j}.{i+5}.\1")
    assert rule.rewrite("x.7.bc.10") == "bc.3.12.x"
    assert IndexMap(r"(?:x|y)\.{i}", "z.{i+1}").rewrite("y.0") == "z.1"


@given(st.integers(0, 1000), st.sampled_from(("weight", "bias")))
def test_the_inverse_undoes_it(number: int, kind: str) -> None:
    name = f"layers.{2 * number + 1}.mixer.{kind}"
    renamed = MLP.rewrite(name)
    assert renamed == f"layers.{number}.mlp.{kind}"
    assert MLP.inverse().rewrite(renamed) == name
    assert MLP.inverse().inverse() == MLP


def test_an_offset_goes_both_ways() -> None:
    rule = IndexMap(r"attn_res\.attn_queries\.{i}", "layers.{i+1}.attention_input.query")
    assert rule.rewrite("attn_res.attn_queries.0") == "layers.1.attention_input.query"
    assert rule.inverse().rewrite("layers.1.attention_input.query") == "attn_res.attn_queries.0"
    assert rule.inverse().rewrite("layers.0.attention_input.query") is None


@pytest.mark.parametrize(
    ("source", "target", "seen"),
    [
        (r"a\.{i}\.(b)", r"a.{i}.\2", "no capture"),
        (r"(a\.{i})", r"b.{i}", "inside a capture"),
        (r"a\.{i}\.(b)", r"a.{i}.(b)", "captures on both sides"),
        (r"a\.*.{i}", r"a.{i}", "stars"),
        (".".join(f"{{{c}}}" for c in "abcdefghij"), "x.{a}", "more than 9"),
        (r"a\.(b)", r"a.\1", "index map"),
    ],
)
def test_what_cannot_be_is_refused(source: str, target: str, seen: str) -> None:
    with pytest.raises(RuleError, match=seen):
        IndexMap(source, target)


def test_a_capture_that_is_lost_has_no_way_back() -> None:
    with pytest.raises(NotInvertible):
        IndexMap(r"a\.{i}\.(b|c)", "a.{i}").inverse()


def test_a_group_of_renames_acts_in_its_scope_alone() -> None:
    """The towers' names are alike: one is as published, the other converted already."""
    group = RenameGroup([r"norm0", r"norm1"], ["norm1", "norm2"], scope=Scope("vision"))
    names = ["vision.norm0.w", "vision.norm1.w", "text.norm0.w", "text.norm1.w"]
    plan = build_plan(Checkpoint.from_specs(dict.fromkeys(names, SPEC)), [group])
    assert names_of(plan) == {
        "vision.norm0.w": "vision.norm1.w",
        "vision.norm1.w": "vision.norm2.w",
        "text.norm0.w": "text.norm0.w",
        "text.norm1.w": "text.norm1.w",
    }
    converted = ["text.norm0.w", "vision.norm1.w", "vision.norm2.w"]
    plan = build_plan(Checkpoint.from_specs(dict.fromkeys(converted, SPEC)), [group])
    assert names_of(plan) == {name: name for name in converted}


def test_it_goes_with_other_renames() -> None:
    rules = [WeightRenaming(r"\.attn_alpha$", ".lambda_1"), IndexMap(r"layers\.{2i}\.lambda_1", "layers.{i}.lambda_1")]
    plan = build_plan(Checkpoint.from_specs({"layers.6.attn_alpha": SPEC}), rules)
    assert names_of(plan) == {"layers.6.attn_alpha": "layers.3.lambda_1"}
