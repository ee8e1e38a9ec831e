"""A residual gate and its two weights: values by NumPy, the way back, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.engine.layouts import opened, plan_specs, same_file
from weightloom.engine import (
    ConversionOp,
    PlanError,
    ResidualGate,
    ResidualWeights,
    RuleError,
    TensorSpec,
    WeightConverter,
    build_plan,
    save_plan,
)

GATE = np.linspace(-3, 3, 13, dtype=np.float32)
TOGETHER = WeightConverter(["a", "b"], "g", [ResidualGate(0.3, 0.001, "F32")], fidelity="keeps")
APART = WeightConverter("g", ["a", "b"], [ResidualWeights(0.3, 0.001, "F32")], fidelity="keeps")


def weights() -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    beta = 1 / (1 + np.exp(-GATE.astype(np.float64) / 0.3))
    alpha = np.sqrt(np.maximum((1 - beta) * (1 + beta), 0.001))
    return {"a": alpha.astype(np.float32), "b": beta.astype(np.float32)}


def test_the_weights_of_a_gate(tmp_path: Path) -> None:
    with opened({"g": GATE}, tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [APART])
        loaded = plan.load()
        for name, expected in weights().items():
            assert np.allclose(np.array(loaded[name]), expected, rtol=2e-5)
        plan.save(loaded, tmp_path / "target")
        assert same_file(tmp_path)


def test_the_gate_of_weights(tmp_path: Path) -> None:
    with opened(weights(), tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [TOGETHER])
        loaded = plan.load()
        assert np.allclose(np.array(loaded["g"]), GATE, atol=2e-2)
        plan.save(loaded, tmp_path / "target")
        assert same_file(tmp_path)


def test_from_another_gate_its_weights_are_computed(tmp_path: Path) -> None:
    with opened(weights(), tmp_path) as checkpoint:
        plan = build_plan(checkpoint, [TOGETHER])
        (file,) = plan.save({"g": mx.array(GATE[::-1].copy())}, tmp_path / "target")
    written = mx.load(str(file))
    assert isinstance(written, dict)
    assert np.allclose(np.array(written["b"]), weights()["b"][::-1], rtol=2e-5)


def test_a_fresh_save() -> None:
    plan = save_plan([TOGETHER], {"g": TensorSpec("F32", (4,))})
    assert set(plan.sources) == {"a", "b"}
    assert TOGETHER.inverse().inverse() == TOGETHER
    for op in (ResidualGate(1.0, 0.0), ResidualWeights(2.0, 0.5, "F16")):
        assert op.inverse().inverse() == op


F32, BF16 = TensorSpec("F32", (4,)), TensorSpec("BF16", (4,))
MISFITS: list[tuple[dict[str, TensorSpec], WeightConverter, str]] = [
    ({"a": F32, "b": BF16}, TOGETHER, "the weights of a gate are"),
    ({"g": BF16}, APART, "a gate of"),
    ({"g": F32}, APART.replace(target_patterns=("a",)), "not two targets"),
    ({"a": F32}, TOGETHER.replace(source_patterns=("a",)), "not two tensors"),
]


@pytest.mark.parametrize(("specs", "rule", "text"), MISFITS)
def test_what_does_not_fit_is_said(specs: dict[str, TensorSpec], rule: WeightConverter, text: str) -> None:
    with pytest.raises(PlanError, match=text):
        plan_specs(specs, [rule]).check()


@pytest.mark.parametrize("make", [lambda: ResidualGate(0, 0.1), lambda: ResidualWeights(1.0, 0.1, "F64")])
def test_what_cannot_be_is_refused_where_it_is_written(make: Any) -> None:
    with pytest.raises(RuleError):
        found: ConversionOp = make()
        assert found
