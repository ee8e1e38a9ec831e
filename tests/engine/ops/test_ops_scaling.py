"""Factors and constants in a layout: values by NumPy, the way back from what was kept, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.engine.layouts import opened, plan_specs, same_file
from weightloom.engine import (
    Add,
    Checkpoint,
    ConversionOp,
    Divide,
    Multiply,
    PlanError,
    RuleError,
    TensorSpec,
    WeightConverter,
    build_plan,
    save_plan,
)

Array = np.ndarray[Any, np.dtype[np.float32]]
CONFIG = {"factor": 3.0, "runs": [0.7, 5.0], "n2": 2, "n4": 4, "inner": {"factors": [11.0, 0.1]}}
VALUES = (np.random.default_rng(5).standard_normal((6, 3)) / 3).astype(np.float32)
RUNS = np.repeat(np.array([0.7, 5.0], np.float32), [2, 4])[:, None]
OPS: list[tuple[ConversionOp, Array]] = [
    (Add(-1), VALUES - np.float32(1)),
    (Multiply(("factor",)), VALUES * np.float32(3)),
    (Divide((3,)), VALUES / np.float32(3)),
    (Divide(("inner.factors[1]",)), VALUES / np.float32(0.1)),
    (Divide(("factor", "runs"), sizes=("n2", "n4")), VALUES / (np.float32(3) * RUNS)),
    (Multiply(("runs", 2), -2, ("n2", 4)), VALUES * (RUNS * np.float32(2))),
]


def rule(op: ConversionOp) -> WeightConverter:
    return WeightConverter("a", "b", [op], fidelity="keeps")


@pytest.mark.parametrize(("op", "expected"), OPS)
def test_values_and_the_source_s_bytes_back(op: ConversionOp, expected: Array, tmp_path: Path) -> None:
    assert op.inverse().inverse() == op
    with opened({"a": VALUES}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [rule(op)], config=CONFIG)
        loaded = plan.load()
        assert np.array_equal(np.array(loaded["b"]), expected)
        assert plan.invertible
        plan.save(loaded, tmp_path / "target")
        assert same_file(tmp_path)


@pytest.mark.parametrize(("op", "expected"), OPS)
def test_from_other_values_the_way_back_is_computed(op: ConversionOp, expected: Array, tmp_path: Path) -> None:
    with opened({"a": VALUES}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [rule(op)], config=CONFIG)
        (file,) = plan.save({"b": mx.array(expected) * 2}, tmp_path / "target")
    written = build_plan_of(file, op.inverse())
    assert np.allclose(np.array(written["b"]), expected * 2, rtol=1e-5)


def build_plan_of(file: Path, op: ConversionOp) -> dict[str, mx.array]:
    """What a file that was written leads to by the op that it was written for, undone twice."""
    return build_plan(Checkpoint.open(file), [rule(op.inverse())], config=CONFIG).load()


def test_in_the_dtype_of_the_tensor(tmp_path: Path) -> None:
    """Factors are rounded to it before they are multiplied: mlx-lm folds them so."""
    one = mx.array(VALUES).astype(mx.bfloat16)
    bits = np.array(one.view(mx.uint16))
    with opened({"a": bits}, tmp_path) as checkpoint:
        op = Multiply(("factor", "runs"), sizes=(2, 4))
        loaded = build_plan(checkpoint, [rule(op)], config=CONFIG).load()
    factors = 3.0 * mx.array(RUNS).astype(mx.bfloat16)
    assert mx.array_equal(loaded["b"], one * factors) and loaded["b"].dtype == mx.bfloat16


@pytest.mark.parametrize(("op", "_"), OPS)
def test_a_fresh_save_needs_no_file(op: ConversionOp, _: Array) -> None:
    spec = TensorSpec("F32", (6, 3))
    assert {name: found.logical() for name, found in save_plan([rule(op)], {"b": spec}, CONFIG).sources.items()} == {
        "a": spec
    }


MISFITS: list[tuple[TensorSpec, ConversionOp, str]] = [
    (TensorSpec("I32", (6, 3)), Add(1), "Add on"),
    (TensorSpec("I32", (6, 3)), Multiply((2,)), "factors on"),
    (TensorSpec("F32", (6, 3)), Divide((0,)), "a factor among"),
    (TensorSpec("F32", (6, 3)), Divide(("lacking",)), "the config gives as None"),
    (TensorSpec("F32", (6, 3)), Divide(("runs",)), "the config gives as"),
    (TensorSpec("F32", (5, 3)), Divide(("runs",), sizes=(2, 4)), "6 rows"),
    (TensorSpec("F32", (6, 3)), Divide(("runs",), 2, (2, 4)), "dim 2"),
]


@pytest.mark.parametrize(("spec", "op", "text"), MISFITS)
def test_what_does_not_fit_is_said(spec: TensorSpec, op: ConversionOp, text: str) -> None:
    plan = plan_specs({"a": spec}, [rule(op)], config=CONFIG)
    with pytest.raises(PlanError, match=text):
        plan.check()


@pytest.mark.parametrize("make", [lambda: Divide(()), lambda: Multiply((True,)), lambda: Divide(("f(x)",))])
def test_what_cannot_be_is_refused_where_it_is_written(make: object) -> None:
    with pytest.raises(RuleError):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("op", [Multiply((1,)), Divide(("ones", 1.0), sizes=(2, 4))])
def test_factors_of_one_change_nothing(op: ConversionOp) -> None:
    plan = plan_specs({"a": TensorSpec("F32", (6, 3))}, [rule(op)], config={"ones": [1, 1.0]})
    plan.check()
    assert plan.groups[0].program.is_identity and not plan.groups[0].program.rounds


def test_packed_words_stay_and_their_scales_take_the_factors(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    words = rng.integers(0, 2**32, (6, 8), dtype=np.uint32)
    with mx.stream(mx.cpu):
        weight = mx.dequantize(mx.array(words), *(mx.array(VALUES[:, :2]) for _ in range(2)), 32, 4)
    packed = {"a.weight": words, "a.scales": VALUES[:, :2].copy(), "a.biases": VALUES[:, :2].copy()}
    each = WeightConverter(r"a\.(weight|scales|biases)", r"b.\1", [Multiply(("runs",), sizes=(2, 4))], fidelity="keeps")
    save_file(packed, tmp_path / "model.safetensors")
    with Checkpoint.open(tmp_path) as checkpoint:
        found = build_plan(checkpoint, [each], config=CONFIG).load()
    assert np.array_equal(np.array(found["b.weight"]), words)
    with mx.stream(mx.cpu):
        scaled = mx.dequantize(found["b.weight"], found["b.scales"], found["b.biases"], 32, 4)
    assert np.allclose(np.array(scaled), np.array(weight) * RUNS, rtol=1e-5)
