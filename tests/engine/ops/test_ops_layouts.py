"""Layouts as they are published: what the ops make of them, by NumPy, and the way back from a load and without one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.engine.layouts import Array, check, counted, plan_specs
from weightloom.engine import (
    ChannelsFirst,
    ChannelsLast,
    Chunk,
    Concatenate,
    Conv3dToLinear,
    ConversionOp,
    Flatten,
    Interleave,
    LinearToConv3d,
    Permute,
    PermuteForRope,
    PlanError,
    Rearrange,
    Reshape,
    RuleError,
    Split,
    Squeeze,
    StackAcross,
    TensorSpec,
    Transpose,
    Unflatten,
    Unsqueeze,
    UnstackAcross,
    WeightConverter,
)


def halved(rows: Array, heads: int) -> Array:
    """Each head's rows, the even ones first."""
    parts = np.split(rows, heads)
    return np.concatenate([np.concatenate([part[0::2], part[1::2]]) for part in parts])


def test_one_list_of_experts_is_shared_by_two_towers(tmp_path: Path) -> None:
    """Ernie 4.5 VL: the first half of the experts is the text's, the second the images'."""
    gate = {f"mlp.experts.{n}.gate_proj.weight": counted(3, 5, start=100 * n) for n in range(12)}
    up = {f"mlp.experts.{n}.up_proj.weight": counted(3, 5, start=5000 + 100 * n) for n in range(12)}
    down = {f"mlp.experts.{n}.down_proj.weight": counted(5, 3, start=9000 + 100 * n) for n in range(12)}
    towers = ("text_moe", "vision_moe")
    rules = [
        WeightConverter(
            [r"experts\.*.gate_proj.weight", r"experts\.*.up_proj.weight"],
            [f"{tower}.experts.gate_up_proj" for tower in towers],
            [StackAcross(stack_dim=0, concat_dim=1)],
        ),
        WeightConverter(
            r"experts\.*.down_proj.weight",
            [f"{tower}.experts.down_proj" for tower in towers],
            [StackAcross(stack_dim=0, concat_dim=1)],
        ),
    ]
    gates, ups, downs = (np.stack(list(arrays.values())) for arrays in (gate, up, down))
    expected = {}
    for tower, half in zip(towers, (slice(6), slice(6, 12)), strict=True):
        expected[f"mlp.{tower}.experts.gate_up_proj"] = np.concatenate([gates[half], ups[half]], 1)
        expected[f"mlp.{tower}.experts.down_proj"] = downs[half]
    check({**gate, **up, **down}, rules, expected, tmp_path)


def test_towers_may_have_experts_of_sizes_of_their_own(tmp_path: Path) -> None:
    """Experts of the text are wider than those of the images; each tower's are of one size."""
    sizes = (3, 3, 2, 2)
    gate = {f"e.{n}.gate": counted(size, 5, start=100 * n) for n, size in enumerate(sizes)}
    up = {f"e.{n}.up": counted(size, 5, start=1000 + 100 * n) for n, size in enumerate(sizes)}
    rule = WeightConverter([r"e\.*.gate", r"e\.*.up"], ["text", "vision"], [StackAcross()])
    gates, ups = list(gate.values()), list(up.values())
    expected = {
        name: np.concatenate([np.stack(gates[half]), np.stack(ups[half])], 1)
        for name, half in (("text", slice(2)), ("vision", slice(2, 4)))
    }
    check({**gate, **up}, [rule], expected, tmp_path)


def test_a_tower_s_experts_are_of_one_size() -> None:
    specs = {f"e.{n}.w": TensorSpec("BF16", (size, 2)) for n, size in enumerate((3, 2, 3, 2))}
    plan = plan_specs(specs, [WeightConverter(r"e\.*.w", ["a", "b"], [StackAcross()])])
    assert "BF16 [3, 2] and of BF16 [2, 2]" in plan.report.mismatched[0].seen


def test_towers_that_hold_unequally_many_experts_are_refused() -> None:
    specs = {"a": TensorSpec("BF16", (2, 6, 5)), "b": TensorSpec("BF16", (3, 6, 5))}
    plan = plan_specs(specs, [WeightConverter(["a", "b"], [r"e\.*.w"], [UnstackAcross()])])
    assert "2, 3 tensors stacked" in plan.report.mismatched[0].seen


@pytest.mark.parametrize(("count", "seen"), [(3, "3 tensors for 2 targets"), (1, "1 tensors for 2 targets")])
def test_experts_that_two_towers_cannot_share_are_refused(count: int, seen: str) -> None:
    rule = WeightConverter(r"e\.*.w", ["a", "b"], [StackAcross()])
    plan = plan_specs({f"e.{n}.w": TensorSpec("BF16", (2, 2)) for n in range(count)}, [rule])
    assert seen in plan.report.mismatched[0].seen
    with pytest.raises(PlanError, match="share equally"):
        plan.check()


def test_fused_experts_are_taken_apart() -> None:
    rule = WeightConverter(["a", "b"], [r"e\.*.gate", r"e\.*.up"], [UnstackAcross()])
    specs = {"a": TensorSpec("BF16", (2, 6, 5)), "b": TensorSpec("BF16", (2, 6, 5))}
    plan = plan_specs(specs, [rule])
    assert sorted(plan.params) == sorted(f"e.{n}.{part}" for n in range(4) for part in ("gate", "up"))
    assert {spec.shape for spec in plan.params.values()} == {(3, 5)}


def test_message_queries_are_merged_row_by_row(tmp_path: Path) -> None:
    """Two rows a layer in either: query and mlp, key and value; one tensor in the order query, key, value, mlp."""
    queries, others = counted(6, 4), counted(6, 4, start=1000)
    rule = WeightConverter(
        ["cross_pass_queries", "cross_pass_kv_queries"],
        "message_input.query",
        [Unflatten(0, 1, sizes=(-1, 2)), Concatenate(1), Rearrange(1, (0, 2, 3, 1))],
    )
    expected = np.stack([queries[0::2], others[0::2], others[1::2], queries[1::2]], 1)
    arrays = {"m.cross_pass_queries": queries, "m.cross_pass_kv_queries": others}
    check(arrays, [rule], {"m.message_input.query": expected}, tmp_path)


@pytest.mark.parametrize("kind", ["weight", "bias"])
def test_fused_vision_attention_is_cut_and_permuted(tmp_path: Path, kind: str) -> None:
    fused = counted(24, 8) if kind == "weight" else counted(24)
    names = [f"attn.{part}_proj.{kind}" for part in "qkv"]
    op = PermuteForRope(subconfig_key="vision_config", permute_layer_names=["q_proj", "k_proj"])
    rule = WeightConverter(rf"attn\.in_proj_{kind}", names, [Chunk(0), op])
    config = {"num_attention_heads": 7, "vision_config": {"num_attention_heads": 2, "hidden_size": 8}}
    q, k, v = np.split(fused, 3)
    expected = {f"v.1.{name}": part for name, part in zip(names, (halved(q, 2), halved(k, 2), v), strict=True)}
    check({f"v.1.attn.in_proj_{kind}": fused}, [rule], expected, tmp_path, config)


def test_attention_is_permuted_and_fused(tmp_path: Path) -> None:
    parts = {f"a.{part}_proj": counted(8, 8, start=100 * n) for n, part in enumerate("qkv")}
    ops = [PermuteForRope(permute_layer_names=["q_proj", "k_proj"], inverse=True), Concatenate(0)]
    rule = WeightConverter([r"a\.q_proj", r"a\.k_proj", r"a\.v_proj"], "a.qkv", ops)
    q, k, v = parts.values()

    def whole(rows: Array) -> Array:
        """The inverse of `halved`, by where it puts each row."""
        return rows[np.argsort(halved(np.arange(8), 2))]

    expected = np.concatenate([whole(q), whole(k), v])
    check(parts, [rule], {"a.qkv": expected}, tmp_path, {"num_attention_heads": 2, "head_dim": 4})


def test_turns_are_taken_apart_in_the_middle_of_a_chain(tmp_path: Path) -> None:
    fused = counted(2, 6, 4)
    rule = WeightConverter("w13", ["gate_proj", "up_proj"], [Interleave(1), Chunk(1), Transpose(1, 2)])
    expected = {"gate_proj": fused[:, 0::2].swapaxes(1, 2), "up_proj": fused[:, 1::2].swapaxes(1, 2)}
    check({"w13": fused}, [rule], expected, tmp_path)


@pytest.mark.parametrize("closed", [True, False])
def test_as_many_shards_as_the_config_says(tmp_path: Path, closed: bool) -> None:
    """Numbered by their own numbers: shard_10 comes after shard_9."""
    shards = {f"ngram.shard_{n}.weight": counted(2, 3, start=10 * n) for n in range(12)}
    rule = WeightConverter(
        "ngram.shard_*.weight", "ngram.weight", [Concatenate(0, num_shards_attribute="split_ngram_parts")]
    )
    whole = np.concatenate(list(shards.values()))
    check(shards, [rule], {"ngram.weight": whole}, tmp_path, {"split_ngram_parts": 12}, closed=closed)


def test_a_tensor_is_cut_into_as_many_as_the_config_says(tmp_path: Path) -> None:
    whole = counted(12, 3)
    rule = WeightConverter("table", r"shards\.*.weight", [Chunk(0, num_shards_attribute="parts")])
    expected = {f"shards.{n}.weight": whole[3 * n : 3 * n + 3] for n in range(4)}
    check({"table": whole}, [rule], expected, tmp_path, {"parts": 4})


@pytest.mark.parametrize(
    ("rows", "sizes", "config"),
    [
        ((16, 16, 32), ["keys * 4", "keys * 4", "values * 4"], {"keys": 4, "values": 8}),
        ((120, 16), ["vocab_size", "additional_vocab_size"], {"vocab_size": 120, "additional_vocab_size": 16}),
        ((3, 1), [3, 1], {}),
    ],
)
def test_unequal_parts_come_back_as_they_were(
    tmp_path: Path, rows: tuple[int, ...], sizes: list[int | str], config: dict[str, int]
) -> None:
    """olmo_hybrid's convolutions, 16 + 16 + 32 rows, and molmo2's embedding, 120 + 16: not into equal parts."""
    parts = {f"conv.{n}": counted(count, 2, start=1000 * n) for n, count in enumerate(rows)}
    rule = WeightConverter([rf"conv\.{n}" for n in range(len(rows))], "conv_all", [Concatenate(0, sizes=sizes)])
    check(parts, [rule], {"conv_all": np.concatenate(list(parts.values()))}, tmp_path, config)


def test_unequal_parts_from_the_module(tmp_path: Path) -> None:
    whole = counted(10, 2)
    rule = WeightConverter("qkv", ["q", "kv"], [Split(0)])
    check({"qkv": whole}, [rule], {"q": whole[:7], "kv": whole[7:]}, tmp_path)


SHAPES: list[tuple[tuple[int, ...], list[ConversionOp], tuple[int, ...]]] = [
    ((4, 6), [Reshape((2, -1, "n"), back=(4, 6))], (2, 4, 3)),
    ((4, 1, 6), [Squeeze(1)], (4, 6)),
    ((4, 6), [Unsqueeze(-1)], (4, 6, 1)),
    ((2, 3, 4), [Flatten(0, 1, sizes=(2, "n"))], (6, 4)),
    ((2, 3, 4), [Flatten(-2, -1, sizes=("n", -1))], (2, 12)),
    ((2, 12), [Unflatten(-2, -1, sizes=("n", 4))], (2, 3, 4)),
    ((2, 3, 4, 5), [Flatten(1, -1, sizes=("n", 4, 5))], (2, 60)),
    ((8, 3, 2, 2, 2), [Conv3dToLinear("n", (2, 2, 2))], (8, 24)),
    ((8, 24), [LinearToConv3d(3, (2,))], (8, 3, 2, 2, 2)),
    ((8, 24), [LinearToConv3d(3, (2, 2, 2))], (8, 3, 2, 2, 2)),
]


@pytest.mark.parametrize(("before", "ops", "after"), SHAPES)
def test_shapes_change_and_come_back(
    tmp_path: Path, before: tuple[int, ...], ops: list[ConversionOp], after: tuple[int, ...]
) -> None:
    array = counted(*before)
    check({"w": array}, [WeightConverter("w", "v", ops)], {"v": array.reshape(after)}, tmp_path, {"n": 3})


def test_a_kernel_is_put_channels_last(tmp_path: Path) -> None:
    kernel = counted(4, 3, 2, 5)
    check(
        {"w": kernel},
        [WeightConverter("w", "v", [Permute((0, 2, 3, 1))])],
        {"v": kernel.transpose(0, 2, 3, 1)},
        tmp_path,
    )


@pytest.mark.case("C16")
@pytest.mark.parametrize("shape", [(4, 2, 2, 3), (3, 3, 3, 3)])
def test_channels_come_first(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """Case C16: where the shape shows nothing, the layout that the file is in decides."""
    kernel = counted(*shape)
    rule = WeightConverter("w", "v", [ChannelsFirst("n")])
    check({"w": kernel}, [rule], {"v": np.moveaxis(kernel, -1, 1)}, tmp_path, {"n": 3})


@pytest.mark.case("C16")
def test_channels_that_are_first_stay_there() -> None:
    """Case C16: a file that says it is MLX's, and has them where torch has them."""
    plan = plan_specs({"w": TensorSpec("F32", (4, 3, 2, 2))}, [WeightConverter("w", "v", [ChannelsFirst(3)])])
    assert plan.params == {"v": TensorSpec("F32", (4, 3, 2, 2))}
    assert plan.groups[0].program.is_identity


def test_a_shape_is_taken_from_the_parameter() -> None:
    rule = WeightConverter("w", "v", [Reshape()])
    plan = plan_specs({"w": TensorSpec("F32", (4, 6))}, [rule], params={"v": TensorSpec("F32", (3, 8))})
    assert plan.ok()
    assert "which is not known here" in plan_specs({"w": TensorSpec("F32", (4, 6))}, [rule]).report.mismatched[0].seen


MISFITS: list[tuple[tuple[int, ...], ConversionOp, str]] = [
    ((4, 6), Reshape((5, -1)), "24 elements for sizes 5, -1"),
    ((4, 6), Reshape((-1, -1)), "24 elements"),
    ((4, 6), Reshape((4, 4)), "whose product is 24"),
    ((0, 6), Reshape((0, -1)), "0 elements"),
    ((4, 6), Squeeze(0), r"dim 0 of \[4, 6\]"),
    ((4, 6), Squeeze(2), "dim 2"),
    ((4, 6), Unflatten(0, 2, sizes=(2, 2)), "a size for each"),
    ((4, 6), Flatten(0, 2), "dim 2"),
    ((4, 6), Flatten(1, -2), "dims 1 to 0"),
    ((4, 6), Permute((1, 0, 2)), "axes"),
    ((4, 6), Rearrange(0, (1, 2, 0)), "4 rows along dim 0"),
    ((4, 6), Conv3dToLinear(1, (2, 3, 1)), "tensor of"),
    ((4, 6), LinearToConv3d(1, (2, 2, 1)), "tensor of"),
    ((4, 6), UnstackAcross(2, 0), "dim 2"),
    ((4, 6), ChannelsFirst(6), "channels, 6, last"),
    ((4, 2, 6), ChannelsLast(3), "channels, 3, first"),
]


@pytest.mark.parametrize(("shape", "op", "text"), MISFITS)
def test_what_does_not_fit_is_said(shape: tuple[int, ...], op: ConversionOp, text: str) -> None:
    plan = plan_specs({"w": TensorSpec("F32", shape)}, [WeightConverter("w", "v", [op])])
    with pytest.raises(PlanError, match=text):
        plan.check()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Flatten(-1, 0),
        lambda: Flatten(2, 1),
        lambda: Permute((0, 2)),
        lambda: Permute(()),
        lambda: Rearrange(0, (0, 0)),
        lambda: Rearrange(0, (True, False)),
        lambda: Conv3dToLinear(3, (2, 2)),
        lambda: Reshape(()),
        lambda: ChannelsFirst(0),
        lambda: ChannelsLast(True),
        lambda: Reshape(("n +",)),
        lambda: Unflatten(0, 1, sizes=(None,)),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(make: object) -> None:
    with pytest.raises(RuleError):
        make()  # type: ignore[operator]
