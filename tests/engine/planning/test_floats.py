"""Plans of FP8 codes with a scale for each block, as floats: values by NumPy, and the source's bytes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.layouts import opened, plan_specs
from tests.engine.ops.test_ops_values import codes_of, e4m3, to_bf16
from tests.laws.sources import of_array
from tests.laws.worlds import bytes_of
from weightloom.engine import (
    Checkpoint,
    Concatenate,
    MergeModulelist,
    PlanError,
    RuleSet,
    TensorSpec,
    WeightConverter,
)
from weightloom.engine.codings.fp8_blocks import Fp8Blocks
from weightloom.engine.ops.coded import DequantizeCodes
from weightloom.engine.planning.composing.unpacking import Packed, plan_unpacked
from weightloom.engine.planning.floats import check_floats

ROWS, COLUMNS, BLOCK = 5, 7, (2, 3)
Values = np.ndarray[Any, Any]


def coded(seed: int) -> tuple[Values, Values]:
    scales = np.random.default_rng(seed).uniform(0.01, 1, (3, 3)).astype(np.float32)
    return codes_of(ROWS, COLUMNS, seed=seed, most=0x7E), scales


def values(codes: Values, scales: Values) -> Values:
    """By the block that each element lies in."""
    rows, columns = np.indices(codes.shape)
    return e4m3(codes) * scales[rows // BLOCK[0], columns // BLOCK[1]]


def unpacked(name: str) -> Packed:
    names = (name, f"{name}_scale_inv")
    return Packed(WeightConverter(names, name, [DequantizeCodes(Fp8Blocks(BLOCK))]), names, (name,))


def test_codes_are_floats_before_anything_else_is_done(tmp_path: Path) -> None:
    """Two stacked products and their scales, joined unequally to blocks; what is no code stays as it is."""
    parts = {(n, side): coded(10 * n + len(side)) for n in range(2) for side in ("gate", "up")}
    norm = np.arange(4, dtype=np.uint16)
    tensors = {"norm": of_array(norm, "BF16")}
    for (n, side), (codes, scales) in parts.items():
        tensors[f"e.{n}.{side}"] = of_array(codes, "F8_E4M3")
        tensors[f"e.{n}.{side}_scale_inv"] = of_array(scales, "F32")
    joined = [MergeModulelist(0), Concatenate(1)]
    rules = RuleSet((WeightConverter(["e.*.gate", "e.*.up"], "e.gate_up", joined),))
    decoded = [unpacked(f"e.{n}.{side}") for n, side in parts]
    with opened(tensors, tmp_path) as checkpoint:
        plan = plan_unpacked(checkpoint, decoded, rules)
        assert plan.params == {
            "e.gate_up": TensorSpec("BF16", (2, 2 * ROWS, COLUMNS)),
            "norm": TensorSpec("BF16", (4,)),
        }
        params = plan.load(threads=1)
        wanted = np.stack([np.concatenate([values(*parts[n, side]) for side in ("gate", "up")]) for n in range(2)])
        assert bytes_of(params["e.gate_up"]) == to_bf16(wanted).tobytes()
        plan.save(params, tmp_path / "target")
    assert (tmp_path / "target" / "model.safetensors").read_bytes() == (
        tmp_path / "source" / "model.safetensors"
    ).read_bytes()


def specs(codes: tuple[int, ...], scales: tuple[int, ...], dtype: str = "F32") -> dict[str, TensorSpec]:
    return {"a": TensorSpec("F8_E4M3", codes), "a_scale_inv": TensorSpec(dtype, scales)}


@pytest.mark.parametrize(
    ("tensors", "seen"),
    [
        (specs((5, 7), (3, 2)), "scales of F32 .*for codes of"),
        (specs((5, 7), ()), "scales of"),
        (specs((5,), (3,)), "codes of"),
        (specs((5, 7), (3, 3), "I32"), "scales of a quantized weight is I32"),
    ],
)
def test_what_makes_no_floats_is_an_error(tensors: dict[str, TensorSpec], seen: str) -> None:
    checkpoint = Checkpoint.from_specs(tensors)
    with pytest.raises(PlanError, match=seen):
        _ = [group.made for group in plan_unpacked(checkpoint, [unpacked("a")], RuleSet(())).groups]


def test_codes_that_nothing_turns_into_floats_are_an_error() -> None:
    with pytest.raises(PlanError, match=r"a is made of codes"):
        check_floats(plan_specs(specs((5, 7), (3, 3)), []))
