"""Cases C40, C47 and C48: floats and integers that are packed in ways that are taken for one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.test_vendor_formats import loaded, planned
from tests.plugins.formats.codes import Array, Labelled, labelled
from weightloom.engine.errors import ConfigError, PlanError

FLOATS = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}},
}
C40 = {
    "q_proj.weight": Labelled("F8_E4M3", np.full((64, 64), 0x38, np.uint8)),
    "q_proj.weight_scale": labelled(np.full((64, 1), 2.0, np.float32)),
}


def numbers(params: dict[str, mx.array], bits: int, mode: str = "affine", group: int = 32) -> Array:
    parts = (params[f"a.{part}"] for part in ("weight", "scales", "biases") if f"a.{part}" in params)
    return np.array(mx.dequantize(*parts, group_size=group, bits=bits, mode=mode, dtype=mx.float32))


@pytest.mark.case("C40")
def test_floats_of_eight_bits_are_no_packed_integers(tmp_path: Path) -> None:
    with planned([C40], FLOATS, tmp_path) as plan:
        params = plan.load(threads=1)
    values = mx.dequantize(params["q_proj.weight"], params["q_proj.scales"], mode="mxfp8", dtype=mx.float32)
    np.testing.assert_array_equal(np.array(values * params["q_proj.global_scale"]), np.full((64, 64), 2.0))


@pytest.mark.case("C40")
def test_a_format_that_is_not_known_is_refused_by_name(tmp_path: Path) -> None:
    section = {**FLOATS, "format": "marlin-24"}
    with pytest.raises(ConfigError, match="format is 'marlin-24'"), planned([C40], section, tmp_path):
        pass


@pytest.mark.case("C47")
def test_columns_of_awq_stand_in_an_order_of_their_own(tmp_path: Path) -> None:
    tensors = {
        "a.qweight": labelled(np.full((32, 1), 0x75316420, np.int32)),
        "a.qzeros": labelled(np.zeros((1, 1), np.int32)),
        "a.scales": labelled(np.ones((1, 8), np.float16)),
    }
    section = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}
    with planned([tensors], section, tmp_path) as plan:
        found = numbers(plan.load(threads=1), 4)
    np.testing.assert_array_equal(found, np.repeat(np.arange(8.0)[:, None], 32, axis=1))


def gptq(index: Array) -> dict[str, Labelled]:
    return {
        "a.qweight": labelled(np.full((4, 8), 0x88888888, np.uint32).view(np.int32)),
        "a.qzeros": labelled(np.full((index.max() + 1, 1), 0x77777777, np.int32)),
        "a.scales": labelled(np.ones((index.max() + 1, 8), np.float16)),
        "a.g_idx": labelled(index.astype(np.int32)),
    }


def section(**changes: Any) -> dict[str, Any]:
    return {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, **changes}


@pytest.mark.case("C48")
@pytest.mark.parametrize(("form", "value"), [("gptq", 0.0), ("gptq_v2", 1.0)])
def test_zero_points_less_one(tmp_path: Path, form: str, value: float) -> None:
    with planned([gptq(np.zeros(32, np.int32))], section(checkpoint_format=form), tmp_path) as plan:
        found = numbers(plan.load(threads=1), 4)
    np.testing.assert_array_equal(found, np.full((8, 32), value))


MIXED = np.arange(64) % 2


@pytest.mark.case("C48")
def test_groups_out_of_order_are_refused_by_name(tmp_path: Path) -> None:
    """Chosen: refused where the config says that they are in order."""
    tensors = {**gptq(MIXED), "a.qweight": labelled(np.full((8, 8), 0x88888888, np.uint32).view(np.int32))}
    with planned([tensors], section(), tmp_path) as plan, pytest.raises(PlanError, match=r"a\.qweight: g_idx puts"):
        plan.load(threads=1)


@pytest.mark.case("C48")
def test_groups_out_of_order_are_decoded_where_the_config_says_so(tmp_path: Path) -> None:
    """Groups of 16 too, which MLX has none of."""
    for size, index in ((32, MIXED), (16, np.arange(64) % 4)):
        folder = tmp_path / str(size)
        scales = np.repeat(np.arange(1.0, index.max() + 2)[:, None], 8, axis=1).astype(np.float16)
        tensors = {**gptq(index), "a.scales": labelled(scales)}
        tensors["a.qweight"] = labelled(np.full((8, 8), 0x99999999, np.uint32).view(np.int32))
        with planned([tensors], section(group_size=size, desc_act=True), folder) as plan:
            found = loaded(plan)["a.weight"]
        np.testing.assert_array_equal(found, np.repeat(1.0 + index[None], 8, axis=0))
