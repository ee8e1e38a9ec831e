"""Codings of vendors against other readers of theirs: Transformers' FP8 and MXFP4, mlx-lm's AWQ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.test_vendor_formats import planned
from tests.plugins.formats.codes import Array, Labelled, labelled
from tests.plugins.formats.vendors import VENDORS, fp8
from weightloom.engine import Checkpoint, RuleSet
from weightloom.engine.planning.composing.unpacking import plan_unpacked
from weightloom.plugins.discovery.format_manager import FormatManager
from weightloom.plugins.quantization import Stored

pytestmark = pytest.mark.oracle
WEIGHT = np.random.default_rng(4).standard_normal((192, 320), dtype=np.float32)


def decoded(folder: Path, tensors: dict[str, Labelled], section: dict[str, Any]) -> dict[str, Array]:
    """As floats, whatever MLX has."""
    with planned([tensors], section, folder):
        pass
    with Checkpoint.open(folder / "0.safetensors") as checkpoint:
        stored = Stored(section, checkpoint.logical)
        found = FormatManager().find(stored)
        assert found is not None
        made = found[0].unpack(stored, True)
        plan = plan_unpacked(checkpoint, [each.packed for each in made.modules], RuleSet(made.rules))
        return {name: np.array(array.astype(mx.float32)) for name, array in plan.load(threads=1).items()}


@pytest.mark.sample
@pytest.mark.parametrize("block", [(128, 128), (64, 32), (40, 48)])
def test_blocks_of_fp8_as_transformers_decodes_them(tmp_path: Path, block: tuple[int, int]) -> None:
    import torch
    from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight

    parts = fp8(block)(WEIGHT).parts
    section = {"quant_method": "fp8", "weight_block_size": list(block)}
    found = decoded(tmp_path, {f"a.{end}": part for end, part in parts.items()}, section)
    codes = torch.from_numpy(parts["weight"].array).view(torch.float8_e4m3fn)
    scales = torch.from_numpy(parts["weight_scale_inv"].array)
    theirs = _dequantize_fp8_weight(codes, scales, list(block), torch.float32).to(torch.bfloat16)
    np.testing.assert_array_equal(found["a.weight"], theirs.float().numpy())


@pytest.mark.sample
def test_blocks_of_gpt_oss_as_transformers_decodes_them(tmp_path: Path) -> None:
    import torch
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    chance = np.random.default_rng(5)
    blocks = chance.integers(0, 256, (3, 64, 2, 16), np.uint8)
    scales = chance.integers(100, 140, (3, 64, 2), np.uint8)
    stem = "model.layers.0.mlp.experts.gate_up_proj"
    tensors = {f"{stem}_blocks": labelled(blocks), f"{stem}_scales": labelled(scales)}
    found = decoded(tmp_path / "floats", tensors, {"quant_method": "mxfp4"})
    theirs = convert_moe_packed_tensors(torch.from_numpy(blocks.copy()), torch.from_numpy(scales.copy()))
    np.testing.assert_array_equal(found[stem], theirs.float().numpy())
    with planned([tensors], {"quant_method": "mxfp4"}, tmp_path / "packed") as plan:
        params = plan.load(threads=1)
        assert set(params) == {stem, f"{stem}_scales"}
        values = mx.dequantize(params[stem], params[f"{stem}_scales"], mode="mxfp4", dtype=mx.float32)
        np.testing.assert_array_equal(np.array(values), theirs.float().numpy().swapaxes(-1, -2))
        plan.save(params, tmp_path / "back")
    assert (tmp_path / "back" / "0.safetensors").read_bytes() == (tmp_path / "packed" / "0.safetensors").read_bytes()


def test_integers_of_awq_as_mlx_lm_takes_them(tmp_path: Path) -> None:
    from mlx_lm.utils import _transform_awq_weights

    vendor = VENDORS["awq"]
    parts = vendor.code(WEIGHT).parts
    assert vendor.section is not None
    with planned([{f"a.{end}": part for end, part in parts.items()}], dict(vendor.section), tmp_path) as plan:
        ours = plan.load(threads=1)
    weights = {
        f"a.{end}": mx.array(part.array.view(np.uint32) if part.label == "I32" else part.array)
        for end, part in parts.items()
    }
    theirs, section = _transform_awq_weights(weights, dict(vendor.section))
    assert (section["bits"], section["group_size"]) == (4, 32)
    np.testing.assert_array_equal(np.array(ours["a.weight"]), np.array(theirs["a.weight"]))
    np.testing.assert_array_equal(np.array(ours["a.scales"]), np.array(theirs["a.scales"].astype(mx.float32)))
    biases = np.array(theirs["a.biases"].astype(mx.float32))
    np.testing.assert_allclose(np.array(ours["a.biases"]), biases, rtol=2e-3)
