"""The same bytes as another element type, by NumPy, and the layout that needs it: codes of 4 bits, words or bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.engine.layouts import Array, check, plan_specs
from weightloom.engine import (
    BitView,
    Concatenate,
    Interleave,
    PlanError,
    RuleError,
    TensorSpec,
    Unflatten,
    WeightConverter,
)


def some_bytes(*shape: int, seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng(seed).integers(0, 255, shape, np.uint8, endpoint=True))


@pytest.mark.parametrize(("old", "new"), [("U8", "F32"), ("F32", "U8"), ("BF16", "U8"), ("U8", "BF16")])
def test_as_numpy_reads_it(tmp_path: Path, old: str, new: str) -> None:
    types = {"U8": np.uint8, "BF16": np.uint16, "F32": np.uint32}
    raw = some_bytes(2, 3, 16)
    given, wanted = raw.view(types[old]), raw.view(types[new])
    check({"a": given}, [WeightConverter("a", "b", [BitView(old, new)])], {"b": wanted}, tmp_path)


def test_words_of_gate_and_up_are_blocks_of_bytes_in_turn(tmp_path: Path) -> None:
    blocks = some_bytes(2, 6, 3, 16)
    words = blocks.reshape(2, 6, 48).view(np.uint32)
    gate, up = (np.ascontiguousarray(words[:, first::2]) for first in (0, 1))
    ops = [
        Concatenate(1),
        Interleave(1, inverse=True),
        BitView("F32", "U8"),
        Unflatten(-2, -1, [-1, 16]),
    ]
    rule = WeightConverter(["gate.weight", "up.weight"], "gate_up_blocks", ops)
    check({"gate.weight": gate, "up.weight": up}, [rule], {"gate_up_blocks": blocks}, tmp_path)


@pytest.mark.parametrize(
    "spec", [TensorSpec("U8", (2, 6)), TensorSpec("U8", ()), TensorSpec("I8", (2, 4))], ids=["odd", "scalar", "dtype"]
)
def test_bytes_that_make_no_words_are_an_error(spec: TensorSpec) -> None:
    plan = plan_specs({"a": spec}, [WeightConverter("a", "b", [BitView("U8", "U32")])])
    with pytest.raises(PlanError, match="BitView to U32"):
        plan.check()


@pytest.mark.parametrize("dtype", ["F64", "BOOL", "u8", "F4"])
def test_a_dtype_without_a_type_of_its_width_is_an_error(dtype: str) -> None:
    with pytest.raises(RuleError, match=f"BitView of dtype '{dtype}'"):
        BitView("U8", dtype)
