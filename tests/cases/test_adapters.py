"""Adapters through the rules of their model: C60, and what of C61 and C63 is decided by names and shapes."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Array, Arrays, const, filled, specs, write
from weightloom.engine import (
    Checkpoint,
    Chunk,
    Plan,
    PlanError,
    RuleSet,
    Scope,
    TensorSpec,
    WeightConverter,
    WeightRenaming,
    adapter_rules,
    changes,
    plan_adapter,
    save_plan,
)
from weightloom.engine.errors import UsageError
from weightloom.rules import load_rules

EXPERTS = "base_model.model.model.layers.0.block_sparse_moe.experts"
FUSED = "model.layers.0.mlp.experts.gate_up_proj"
PARAMS = {FUSED: TensorSpec("F32", (1, 4, 2)), "lm_head.weight": TensorSpec("F32", (6, 2))}
C60 = {"w1": ([[1, 0]], [[1], [2]]), "w3": ([[0, 1]], [[3], [4]])}


def array(rows: list[list[int]]) -> Array:
    return np.array(rows, np.float32)


def c60(experts: int = 1) -> Arrays:
    """The case's adapter; other experts have their own numbers."""
    return {
        f"{EXPERTS}.{n}.{part}.lora_{side}.weight": array(factor) + 10 * n
        for n in range(experts)
        for part, factors in C60.items()
        for side, factor in zip("AB", factors, strict=True)
    }


def plan_of(arrays: Arrays, params: dict[str, TensorSpec] | None = None) -> Plan:
    checkpoint = Checkpoint.from_arrays({name: mx.array(a) for name, a in arrays.items()})
    return plan_adapter(checkpoint, load_rules("peft"), load_rules("mixtral"), params)


@pytest.mark.case("C60")
def test_two_adapters_become_one_of_the_joined_weight() -> None:
    """C60."""
    plan = plan_of(c60(), PARAMS)
    assert plan.ok()
    (change,) = changes(plan)
    loaded = {name: np.array(found) for name, found in plan.load().items()}
    a, b = loaded[change.a], loaded[change.b]
    assert np.array_equal(a, [[[1, 0], [0, 1]]])
    assert np.array_equal(b, [[[1, 0], [2, 0], [0, 3], [0, 4]]])
    alpha = change.alpha({name: 2 / rank for name, rank in change.parts})
    assert (change.parameter, change.rank, alpha) == (FUSED, 2, 4)
    assert np.array_equal(alpha / change.rank * (b @ a), [2 * array([[1, 0], [2, 0], [0, 3], [0, 4]])])


def test_the_adapter_comes_back_byte_for_byte(tmp_path: Path) -> None:
    source = write(tmp_path / "adapter_model.safetensors", c60(experts=3), {"format": "pt"})
    params = {FUSED: TensorSpec("F32", (3, 4, 2))}
    plan = plan_adapter(Checkpoint.open(source), load_rules("peft"), load_rules("mixtral"), params)
    assert plan.ok()
    assert plan.inverse().inverse() == plan
    (written,) = plan.save(plan.load(), tmp_path / "again")
    assert written.read_bytes() == source.read_bytes()


def test_a_joined_adapter_that_was_never_loaded_is_taken_apart() -> None:
    made = plan_of(c60(experts=2)).load()
    rules = RuleSet((*load_rules("peft"), *adapter_rules(load_rules("mixtral"))))
    plan = save_plan(rules, {name: TensorSpec("F32", found.shape) for name, found in made.items()})
    assert {name: TensorSpec(s.dtype, s.shape) for name, s in plan.sources.items()} == specs(c60(experts=2))


def test_what_does_not_lie_on_the_diagonal_is_not_lost_in_silence(tmp_path: Path) -> None:
    plan = plan_of(c60())
    params = plan.load()
    params[f"lora_B.{FUSED}"] = mx.ones((1, 4, 2))
    with pytest.raises(PlanError, match="has values in rows that the checkpoint has no place for"):
        plan.save(params, tmp_path / "adapter")


def test_parts_may_have_ranks_of_their_own_but_one_scale() -> None:
    arrays = c60() | {f"{EXPERTS}.0.w3.lora_A.weight": const(1, 3, 2), f"{EXPERTS}.0.w3.lora_B.weight": const(1, 2, 3)}
    (change,) = changes(plan_of(arrays, PARAMS))
    assert change.rank == 4
    one, three = (name for name, _ in change.parts)
    assert change.alpha({one: 0.5, three: 0.5}) == 2
    with pytest.raises(PlanError, match=r"has scale 0\.5 and .* has scale 1, and both change"):
        change.alpha({one: 0.5, three: 1})
    with pytest.raises(UsageError, match=r"no scale for .*w3"):
        change.alpha({one: 0.5})


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (f"{EXPERTS}.0.w3.lora_", "w3.* has no index 0"),
        (f"{EXPERTS}.0.w3.lora_B", "w3.* has no index 0"),
        (f"{EXPERTS}.1.w1.lora_A", "w1.* has no index 1"),
    ],
)
def test_half_of_a_joined_adapter_is_an_error(lost: str, said: str) -> None:
    kept = {name: found for name, found in c60(experts=2).items() if not name.startswith(lost)}
    with pytest.raises(PlanError, match=said):
        plan_of(kept, {FUSED: TensorSpec("F32", (2, 4, 2))}).check()


def test_one_factor_alone_is_an_error() -> None:
    arrays = {"base_model.model.lm_head.lora_A.weight": const(1, 1, 2)}
    with pytest.raises(PlanError, match="missing"):
        plan_of(arrays, PARAMS).check()
    with pytest.raises(PlanError, match=r"expected: lora_B\.lm_head\.weight too"):
        changes(plan_of(arrays))


@pytest.mark.parametrize("shape", [(5, 1), (6, 2)])
def test_a_factor_of_the_wrong_size_is_an_error(shape: tuple[int, int]) -> None:
    head = "base_model.model.lm_head.lora_"
    with pytest.raises(PlanError, match=r"lora_B\.lm_head\.weight"):
        plan_of({f"{head}A.weight": const(1, 1, 2), f"{head}B.weight": const(1, *shape)}, PARAMS).check()


@pytest.mark.case("C61")
def test_an_adapter_of_another_model_is_an_error() -> None:
    """C61: it matches no layer at all."""
    arrays = {"base_model.model.h.0.attn.c_attn.lora_A.weight": const(1, 1, 2)}
    plan = plan_of(arrays, PARAMS)
    assert plan.report.unexpected == tuple(arrays)
    with pytest.raises(PlanError, match="unexpected"):
        plan.check()


@pytest.mark.case("C61")
def test_an_adapter_s_own_name_is_taken_out_first() -> None:
    """C61."""
    named = {name.replace(".weight", ".default.weight"): found for name, found in c60().items()}
    assert {change.parameter for change in changes(plan_of(named, PARAMS))} == {FUSED}
    assert plan_of(named, PARAMS).ok()
    assert {record.why for record in plan_of(c60() | named, PARAMS).report.ambiguous} == {"two names for one place"}


@pytest.mark.case("C63")
def test_a_resized_head_beside_the_factors_stops_the_load() -> None:
    """C63: never dropped."""
    whole = {"base_model.model.lm_head.modules_to_save.default.weight": const(1, 6, 2)}
    assert np.array_equal(plan_of(whole, PARAMS).load()["whole.lm_head.weight"], const(1, 6, 2))
    with pytest.raises(PlanError, match=r"whole\.lm_head\.weight"):
        plan_of({"base_model.model.lm_head.weight": const(1, 7, 2)}, PARAMS).check()


@pytest.mark.parametrize("kind", ["lora_gate_A", "lora_magnitude_vector.weight", "lora_A.weight.extra"])
def test_other_kinds_of_tensor_are_named(kind: str) -> None:
    name = f"base_model.model.lm_head.{kind}"
    assert plan_of({name: const(1, 1, 2)}, PARAMS).report.unexpected == (name,)


def test_an_op_that_cannot_be_carried_over_refuses_only_what_it_claims() -> None:
    rules = [WeightConverter(r"qkv\.weight", ["q.weight", "k.weight"], [Chunk()]), WeightRenaming("old", "new")]
    arrays = filled({f"base_model.model.{n}.lora_{s}.weight": (2, 2) for n in ("old", "qkv") for s in "AB"})
    checkpoint = Checkpoint.from_arrays({name: mx.array(a) for name, a in arrays.items()})
    plan = plan_adapter(checkpoint, load_rules("peft"), rules)
    assert {change.parameter for change in changes(plan)} == {"new.weight"}
    with pytest.raises(PlanError, match=r"Chunk.*cannot be carried over to the two factors .* share one of them"):
        plan.check()


def test_rules_of_a_sub_model_see_its_factors_alone() -> None:
    """With the base model's prefix and without, as they see its weights."""
    rules = [WeightRenaming("^old", "new", scope=Scope("vision", "model")), WeightRenaming("^new", "newer")]
    names = ("model.vision.old", "vision.old", "text.old", "new")
    arrays = filled({f"base_model.model.{n}.lora_{s}.weight": (2, 2) for n in names for s in "AB"})
    checkpoint = Checkpoint.from_arrays({name: mx.array(a) for name, a in arrays.items()})
    found = {change.parameter for change in changes(plan_adapter(checkpoint, load_rules("peft"), rules))}
    assert found == {"model.vision.new.weight", "vision.new.weight", "text.old.weight", "newer.weight"}


def test_an_empty_scope_sees_factors_with_the_base_s_prefix_first() -> None:
    rules = [WeightRenaming("^old", "new", scope=Scope("", "model"))]
    for names, wanted in (
        (("model.old", "old"), {"model.new.weight", "old.weight"}),
        (("old",), {"new.weight"}),
    ):
        arrays = filled({f"base_model.model.{n}.lora_{s}.weight": (2, 2) for n in names for s in "AB"})
        checkpoint = Checkpoint.from_arrays({name: mx.array(a) for name, a in arrays.items()})
        assert {change.parameter for change in changes(plan_adapter(checkpoint, load_rules("peft"), rules))} == wanted


@pytest.mark.parametrize(
    ("file", "parameter"),
    [
        ("layers.0.q_proj", "model.layers.0.q_proj"),
        ("model.layers.0.q_proj", "layers.0.q_proj"),
        ("lm_head", "lm_head"),
    ],
)
def test_an_adapter_of_the_base_model_fits_the_whole_and_the_other_way_round(file: str, parameter: str) -> None:
    arrays = {f"base_model.model.{file}.lora_{side}.weight": const(1, 2, 2) for side in "AB"}
    params = {f"{parameter}.weight": TensorSpec("F32", (2, 2))}
    plan = plan_of(arrays, params)
    assert plan.ok()
    assert [change.parameter for change in changes(plan)] == list(params)
    assert {name for group in plan.inverse().groups for name in group.targets} == set(arrays)


MLX_NAMES = [
    WeightRenaming(r"^model\.*.lora_a", "^lora_A.model.*.weight"),
    WeightRenaming(r"^model\.*.lora_b", "^lora_B.model.*.weight"),
]


def test_factors_of_stacked_experts_have_as_many_dims() -> None:
    """As mlx-lm writes them: gate and up are stacked and not joined, so that the rows of three dims are joined."""
    sizes = {"gate_proj": (6, 4), "up_proj": (6, 4), "down_proj": (4, 6)}
    shapes = {"a": lambda rows, columns: (3, 2, columns), "b": lambda rows, columns: (3, rows, 2)}
    arrays = filled(
        {
            f"model.layers.0.mlp.switch_mlp.{module}.lora_{side}": shape(*size)
            for module, size in sizes.items()
            for side, shape in shapes.items()
        }
    )
    experts = "model.layers.0.mlp.experts"
    params = {
        f"{experts}.gate_up_proj": TensorSpec("F32", (3, 12, 4)),
        f"{experts}.down_proj": TensorSpec("F32", (3, 4, 6)),
    }
    checkpoint = Checkpoint.from_arrays({name: mx.array(a) for name, a in arrays.items()})
    plan = plan_adapter(checkpoint, MLX_NAMES, load_rules("qwen3_moe", layout="mlx"), params)
    assert plan.ok()
    loaded = {name: np.array(found) for name, found in plan.load().items()}
    made = {change.parameter: loaded[change.b] @ loaded[change.a] for change in changes(plan)}
    wanted = {
        m: arrays[f"model.layers.0.mlp.switch_mlp.{m}.lora_b"] @ arrays[f"model.layers.0.mlp.switch_mlp.{m}.lora_a"]
        for m in sizes
    }
    joined = np.concatenate([wanted["gate_proj"], wanted["up_proj"]], 1)
    assert np.allclose(made[f"{experts}.gate_up_proj"], joined)
    assert np.array_equal(made[f"{experts}.down_proj"], wanted["down_proj"])


@pytest.mark.parametrize("shape", [(2,), (1, 2, 2)])
def test_a_factor_has_as_many_dims_as_its_tensor(shape: tuple[int, ...]) -> None:
    arrays = c60() | {f"{EXPERTS}.0.w1.lora_A.weight": const(1, *shape)}
    with pytest.raises(PlanError, match=r"lora_A\.model\.layers\.0\.mlp\.experts\.gate_up_proj"):
        plan_of(arrays, PARAMS).check()


@pytest.mark.parametrize(("a", "b"), [((2,), (2,)), ((1, 2), (2, 2)), ((), (2, 2))])
def test_factors_that_do_not_go_together(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    plan = plan_of({"base_model.model.q.lora_A.weight": const(1, *a), "base_model.model.q.lora_B.weight": const(1, *b)})
    with pytest.raises(PlanError, match=r"the factors of q\.weight are"):
        changes(plan)
