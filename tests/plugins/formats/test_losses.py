"""What coding anew costs: memory while it is done, and precision, which is measured by MLX's own decoding."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

import weightloom as wl
from tests.plugins.formats.codes import Tensors, fraction, write
from tests.plugins.formats.test_formats import numbers_of
from tests.plugins.formats.vendors import VENDORS, fp8, make
from tests.runtime.support import Cli
from weightloom.engine import Checkpoint, RuleSet
from weightloom.engine.codings.mxfp8_codes import to_mxfp8
from weightloom.engine.planning.composing.unpacking import plan_unpacked
from weightloom.engine.reading.recoding import recodes, recodings
from weightloom.plugins.discovery.format_manager import FormatManager
from weightloom.plugins.quantization import Stored
from weightloom.rules import load_rules

# DeepSeek-V3 has 256 experts a layer, and hidden sizes of 64 times as much.
EXPERTS, HIDDEN, WIDTH, LAYERS = 256, 128, 32, 2
SECTION = {"quant_method": "fp8", "weight_block_size": [128, 128]}


def experts() -> Tensors:
    chance = np.random.default_rng(1)
    code = fp8((128, 128))
    shapes = {"gate_proj": (WIDTH, HIDDEN), "up_proj": (WIDTH, HIDDEN), "down_proj": (HIDDEN, WIDTH)}
    made = {part: code(chance.standard_normal(shape, dtype=np.float32)) for part, shape in shapes.items()}
    return {
        f"model.layers.{layer}.mlp.experts.{expert}.{part}.{end}": tensor
        for layer in range(LAYERS)
        for expert in range(EXPERTS)
        for part, coded in made.items()
        for end, tensor in coded.parts.items()
    }


def test_a_load_holds_the_result_and_a_layer_s_experts_at_most(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", experts())
    with Checkpoint.open(tmp_path / "model.safetensors") as checkpoint:
        stored = Stored(SECTION, checkpoint.logical)
        found = FormatManager().find(stored)
        assert found is not None
        made = found[0].unpack(stored, False)
        rules = RuleSet((*made.rules, *load_rules("deepseek_v3")))
        config = {"quantization_config": SECTION, "num_hidden_layers": LAYERS}
        plan = plan_unpacked(checkpoint, [module.packed for module in made.modules], rules, config=config)
        mx.clear_cache()
        before = mx.get_active_memory()
        mx.reset_peak_memory()
        params = plan.load(threads=1)
        peak = mx.get_peak_memory() - before
    layer = sum(array.nbytes for name, array in params.items() if ".layers.1." in name)
    assert set(params) == set(plan.params)
    assert layer * LAYERS == plan.nbytes
    assert peak <= plan.nbytes + layer
    assert peak <= plan.peak_bytes


def test_no_group_is_cut_off_and_each_number_is_rounded_once() -> None:
    values = np.random.default_rng(2).standard_normal((64, 256), dtype=np.float32) * np.float32(37.0)
    words, powers = to_mxfp8(mx.array(values))
    back = np.array(mx.dequantize(words, powers, mode="mxfp8", dtype=mx.float32)).reshape(64, 8, 32)
    groups = values.reshape(64, 8, 32)
    most = np.abs(groups).max(-1, keepdims=True)
    steps = np.exp2(np.ceil(np.log2(most / 448)))
    np.testing.assert_array_equal(np.exp2(np.array(powers).astype(np.float32) - 127)[..., None], steps)
    size = np.maximum(np.exp2(np.floor(np.log2(np.maximum(np.abs(groups) / steps, 2**-9)))), 2.0**-6)
    assert (np.abs(back - groups) <= steps * size / 16).all()


@pytest.mark.parametrize("edge", [448.0, 449.0, 1.75, np.nextafter(np.float32(1.75), np.float32(2)), 0.0, 2.0**-120])
def test_edges_of_the_power(edge: float) -> None:
    values = np.zeros((1, 32), np.float32)
    values[0, 3] = edge
    words, powers = to_mxfp8(mx.array(values))
    back = np.array(mx.dequantize(words, powers, mode="mxfp8", dtype=mx.float32))
    np.testing.assert_allclose(back, values, rtol=2**-4)


def test_powers_of_two_lose_nothing(tmp_path: Path) -> None:
    made = make(tmp_path, "llama", VENDORS["fp8 blocks"])
    tensors = dict(made.tensors)
    for name, each in made.tensors.items():
        if name.endswith("_scale_inv"):
            np.exp2(np.ceil(np.log2(each.array)), out=each.array)
    write(made.path / "model.safetensors", tensors)
    m = wl.load(made.path)
    assert recodes(m.plan) > 0
    assert {found.loss.relative for found in recodings(m.plan)} == {0.0}


def test_the_loss_is_that_of_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make(tmp_path, "qwen3_moe", VENDORS["fp8 blocks"])
    m, dense = wl.load(made.path), numbers_of(wl.load(made.dense))
    held = numbers_of(m)
    found = {name: each.loss for each in recodings(m.plan) for name in each.parameters if name in dense}
    assert found
    for name, loss in found.items():
        assert loss.relative == pytest.approx(fraction(held[name], dense[name]), rel=1e-3)
        assert loss.largest == pytest.approx(np.abs(held[name] - dense[name]).max(), rel=1e-3)
    ran = Cli(capsys)("convert", made.path, tmp_path / "canonical", "--layout", "canonical")
    assert ran.code == 0
    assert "coded anew: " in ran.out + ran.err
    assert "off by 2." in ran.out + ran.err or "off by 3." in ran.out + ran.err
