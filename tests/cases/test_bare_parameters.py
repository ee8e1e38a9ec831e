"""C59: adapters of stacks of experts, which PEFT's `target_parameters` name, in both of its layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.fixtures import Array, Arrays, filled
from tests.cases.test_adapter_kinds import agree, fused_logits
from tests.cases.test_adapter_load import adapter
from tests.runtime.models import write_model
from weightloom.engine import PlanError, RuleSet, TensorSpec
from weightloom.runtime.adapting.adapter_plan import AdapterPlan, plan_on
from weightloom.runtime.adapting.adapter_source import open_adapter
from weightloom.runtime.loading.loading import load

STACK = "experts.gate_up_proj"
MODULE = "base_model.model.experts"
TARGET = ["mlp.experts.gate_up_proj"]


def planned(folder: Path, params: dict[str, tuple[int, ...]]) -> AdapterPlan:
    specs = {name: TensorSpec("F32", shape) for name, shape in params.items()}
    return plan_on(open_adapter(folder), RuleSet(), specs, {})


def made_by(found: AdapterPlan, parameter: str = f"mlp.{STACK}") -> Array:
    """Give the change of a parameter."""
    arrays = {name: np.array(array) for name, array in found.plan.load().items()}
    change = {each.parameter: each for each in found.changes}[parameter]
    product: Array = found.scales[parameter] * (arrays[change.b] @ arrays[change.a])
    return product


def bare(folder: Path, a: Array, b: Array, **values: Any) -> Path:
    module = "base_model.model.mlp.experts"
    tensors = {f"{module}.lora_A.weight": a, f"{module}.lora_B.weight": b}
    return adapter(folder, tensors, **{"r": 1, "target_parameters": TARGET, "target_modules": [], **values})


def whole_in_version(a: Array, b: Array, experts: int, later: bool) -> Array:
    """Give the change as each layout has it: of one expert A's rows lie together, B's columns are `experts` apart."""
    rank = a.shape[0] // experts
    by_expert = [(a[e * rank : (e + 1) * rank], b[:, e::experts]) for e in range(experts)]
    return np.stack([y @ x if later else (y @ x).T for x, y in by_expert])


@pytest.mark.case("C59")
@pytest.mark.parametrize("rank", [1, 3])
def test_shapes_decide_between_the_two_layouts(rank: int, tmp_path: Path) -> None:
    """The case's shapes, (2, 8, 4); both say the same change."""
    new = filled({"a": (2 * rank, 4), "b": (8, 2 * rank)})
    old_a = np.concatenate([new["b"][:, e::2].T for e in range(2)])
    old_b = np.stack([new["a"].reshape(2, rank, 4)[e, n] for n in range(rank) for e in range(2)], axis=1)
    assert (old_a.shape, old_b.shape) == ((2 * rank, 8), (4, 2 * rank))
    params = {f"mlp.{STACK}": (2, 8, 4)}
    later = bare(tmp_path / "later", new["a"], new["b"], r=rank)
    early = bare(tmp_path / "early", old_a, old_b, r=rank)
    wanted = 4 / rank * whole_in_version(new["a"], new["b"], 2, later=True)
    assert np.allclose(wanted, 4 / rank * whole_in_version(old_a, old_b, 2, later=False))
    for folder in (later, early):
        assert np.allclose(made_by(planned(folder, params)), wanted, atol=1e-5)


@pytest.mark.case("C59")
@pytest.mark.parametrize(
    ("version", "later"), [("0.17.0", False), ("0.18.1", False), ("0.19.0", True), ("0.21.2", True), ("1.0.0", True)]
)
def test_of_a_square_stack_the_recorded_version_says(version: str, later: bool, tmp_path: Path) -> None:
    arrays = filled({"a": (4, 6), "b": (6, 4)})
    made = bare(tmp_path / "lora", arrays["a"], arrays["b"], r=2, peft_version=version)
    wanted = 2 * whole_in_version(arrays["a"], arrays["b"], 2, later)
    assert np.allclose(made_by(planned(made, {f"mlp.{STACK}": (2, 6, 6)})), wanted, atol=1e-5)


@pytest.mark.case("C59")
@pytest.mark.parametrize("version", [None, "", "unknown", "0.18.2.dev0"])
def test_a_square_stack_without_a_version_is_refused(version: str | None, tmp_path: Path) -> None:
    """0.18.2 was only ever in development, before the change and after it."""
    arrays = filled({"a": (4, 6), "b": (6, 4)})
    made = bare(tmp_path / "lora", arrays["a"], arrays["b"], r=2, peft_version=version)
    with pytest.raises(PlanError, match="do not say which of them is over its rows") as caught:
        planned(made, {f"mlp.{STACK}": (2, 6, 6)})
    assert caught.value.field == "peft_version"


def nested(rank: int, shapes: dict[str, tuple[int, int]], experts: int = 2) -> Arrays:
    """Factors of two parameters of one module: the first is inside."""
    place = "base_model.model.mlp.experts"
    sizes: dict[str, tuple[int, ...]] = {}
    for module, (rows, columns) in zip((f"{place}.base_layer", place), shapes.values(), strict=True):
        sizes |= {f"{module}.lora_A.weight": (experts * rank, columns)}
        sizes |= {f"{module}.lora_B.weight": (rows, experts * rank)}
    return filled(sizes)


def test_a_square_stack_lies_as_the_other_of_its_file(tmp_path: Path) -> None:
    """Whatever is recorded: a file is of one version."""
    arrays = nested(1, {"gate_up_proj": (12, 6), "down_proj": (6, 6)})
    targets = ["experts.gate_up_proj", "experts.down_proj"]
    made = adapter(tmp_path / "lora", arrays, r=1, target_parameters=targets, peft_version="0.17.0")
    found = planned(made, {"mlp.experts.gate_up_proj": (2, 12, 6), "mlp.experts.down_proj": (2, 6, 6)})
    outer = "base_model.model.mlp.experts"
    a, b = arrays[f"{outer}.lora_A.weight"], arrays[f"{outer}.lora_B.weight"]
    assert np.allclose(made_by(found, "mlp.experts.down_proj"), 4 * whole_in_version(a, b, 2, later=True), atol=1e-5)


def test_factors_that_fit_several_parameters_or_none_are_refused(tmp_path: Path) -> None:
    targets = ["gate_proj", "up_proj"]
    params = {"mlp.experts.gate_proj": (2, 8, 4), "mlp.experts.up_proj": (2, 8, 4)}
    arrays = nested(1, {"gate_proj": (8, 4), "up_proj": (8, 4)})
    with pytest.raises(PlanError, match="fit several of"):
        planned(adapter(tmp_path / "one", arrays, r=1, target_parameters=targets), params)
    arrays = nested(1, {"gate_proj": (8, 4), "up_proj": (7, 4)})
    with pytest.raises(PlanError, match=r"fit none of .*base_layer\.lora_A\.weight") as caught:
        planned(adapter(tmp_path / "two", arrays, r=1, target_parameters=targets), params)
    assert caught.value.field == "target_parameters"


def test_ranks_and_scales_are_those_of_the_parameter(tmp_path: Path) -> None:
    """The patterns name it with its module; the rank in the file is that of all experts."""
    arrays = filled({"a": (6, 4), "b": (8, 6)})
    made = bare(tmp_path / "lora", arrays["a"], arrays["b"], rank_pattern={"gate_up_proj": 3}, use_rslora=True)
    found = planned(made, {f"mlp.{STACK}": (2, 8, 4)})
    assert found.scales == {f"mlp.{STACK}": pytest.approx(4 / np.sqrt(3))}
    assert found.notes == ()
    with pytest.raises(PlanError, match=r"has rank 6, and adapter_config\.json 1 for each of 2"):
        planned(bare(tmp_path / "two", arrays["a"], arrays["b"]), {f"mlp.{STACK}": (2, 8, 4)})


def test_a_target_without_factors_is_a_note(tmp_path: Path) -> None:
    arrays = filled({"a": (2, 4), "b": (8, 2)})
    targets = [*TARGET, "mlp.experts.down_proj", "nothing"]
    made = bare(tmp_path / "lora", arrays["a"], arrays["b"], target_parameters=targets)
    assert planned(made, {f"mlp.{STACK}": (2, 8, 4)}).notes == (
        "adapter_config.json: target_parameters has 'mlp.experts.down_proj', of which the file has no factors",
        "adapter_config.json: target_parameters has 'nothing', of which the file has no factors",
    )


def test_a_matrix_that_is_no_module_s_weight(tmp_path: Path) -> None:
    arrays = filled({"base_model.model.mlp.lora_A.weight": (1, 4), "base_model.model.mlp.lora_B.weight": (8, 1)})
    made = adapter(tmp_path / "lora", arrays, r=1, target_parameters=["mlp.router"])
    wanted = 4 * arrays["base_model.model.mlp.lora_B.weight"] @ arrays["base_model.model.mlp.lora_A.weight"]
    assert np.allclose(made_by(planned(made, {"mlp.router": (8, 4)}), "mlp.router"), wanted)


def of_layer(rank: int = 2) -> Arrays:
    place = "base_model.model.model.layers.1.mlp.experts"
    shapes: dict[str, tuple[int, ...]] = {}
    for module, (rows, columns) in ((f"{place}.base_layer", (48, 32)), (place, (32, 24))):
        shapes |= {f"{module}.lora_A.weight": (4 * rank, columns), f"{module}.lora_B.weight": (rows, 4 * rank)}
    return filled(shapes, seed=11)


@pytest.mark.case("C59")
@pytest.mark.parametrize(
    "targets", [["mlp.experts.gate_up_proj", "mlp.experts.down_proj"], ["gate_up_proj", "down_proj"]]
)
def test_beside_a_model_and_fused_into_files_of_single_experts(targets: list[str], tmp_path: Path) -> None:
    """The adapter is of the stacks that the running model has; the files have an expert each."""
    base = write_model(tmp_path / "base", "mixtral")
    arrays = of_layer()
    place = "base_model.model.model.layers.1.mlp.experts"
    both, down = (
        2 * whole_in_version(arrays[f"{m}.lora_A.weight"], arrays[f"{m}.lora_B.weight"], 4, later=True)
        for m in (f"{place}.base_layer", place)
    )
    published = "model.layers.1.block_sparse_moe.experts"
    deltas = {
        f"{published}.{n}.{w}.weight": part[n]
        for n in range(4)
        for w, part in (("w1", both[:, :24]), ("w2", down), ("w3", both[:, 24:]))
    }
    made = adapter(tmp_path / "lora", arrays, target_parameters=targets, target_modules=[])
    agree(base, made, deltas, tmp_path)


@pytest.mark.case("C59")
def test_a_merge_that_fails_on_shapes_writes_nothing(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "mixtral")
    arrays = {name: array[:, :-1] if name.endswith("lora_A.weight") else array for name, array in of_layer().items()}
    made = adapter(tmp_path / "lora", arrays, target_parameters=["gate_up_proj", "down_proj"])
    with pytest.raises(PlanError, match="fit none of"):
        fused_logits(base, made, tmp_path / "fused")
    assert not (tmp_path / "fused").exists()
    with pytest.raises(PlanError, match="fit none of"):
        load(base, adapter=made)


@pytest.mark.parametrize(("other", "turned"), [((2, 6, 12), True), ((2, 12, 6), False)])
def test_a_bias_says_that_stacks_are_stored_in_out(other: tuple[int, ...], turned: bool, tmp_path: Path) -> None:
    """Of those no version exchanges the factors."""
    arrays = filled({"a": (4, 6), "b": (6, 4)})
    targets = {"r": 2, "target_parameters": ["experts.down_proj"], "peft_version": "0.21.2"}
    made = bare(tmp_path / "lora", arrays["a"], arrays["b"], **targets)
    place = "mlp.experts"
    found = planned(
        made,
        {
            f"{place}.gate_up_proj": other,
            f"{place}.gate_up_proj_bias": (2, 12),
            f"{place}.down_proj": (2, 6, 6),
            f"{place}.down_proj_bias": (2, 6),
        },
    )
    wanted = 2 * whole_in_version(arrays["a"], arrays["b"], 2, later=not turned)
    assert np.allclose(made_by(found, f"{place}.down_proj"), wanted, atol=1e-5)


def test_a_matrix_says_nothing_of_stacks(tmp_path: Path) -> None:
    """No version exchanged a matrix's factors."""
    arrays = filled({"a": (4, 6), "b": (6, 4), "router_a": (2, 6), "router_b": (3, 2)})
    tensors = {
        f"base_model.model.mlp.{place}lora_{side}.weight": arrays[f"{prefix}{side.lower()}"]
        for place, prefix in (("experts.", ""), ("gate.", "router_"))
        for side in "AB"
    }
    targets = {"r": 2, "target_parameters": ["gate.weight", "gate_up_proj"], "peft_version": "0.18.0"}
    found = planned(
        adapter(tmp_path / "lora", tensors, **targets), {f"mlp.{STACK}": (2, 6, 6), "mlp.gate.weight": (3, 6)}
    )
    assert np.allclose(made_by(found), 2 * whole_in_version(arrays["a"], arrays["b"], 2, later=False), atol=1e-5)
    wanted = 2 * arrays["router_b"] @ arrays["router_a"]
    assert np.allclose(made_by(found, "mlp.gate.weight"), wanted, atol=1e-5)
