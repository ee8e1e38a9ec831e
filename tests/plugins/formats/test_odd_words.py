"""Integers that run on from word to word, zeros that do not fill their words, and what other forms are refused by."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

import weightloom as wl
from tests.cases.test_vendor_formats import loaded, planned
from tests.plugins.formats.codes import in_words, labelled
from tests.plugins.formats.vendors import VENDORS, gptq, integers, make, rewrite
from weightloom.engine.codings.words import unpack
from weightloom.engine.errors import ConfigError, PlanError

CHANCE = np.random.default_rng(7)


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 8])
def test_numbers_of_any_width_come_out_of_their_words(bits: int) -> None:
    numbers = CHANCE.integers(0, 1 << bits, (3, 64))
    np.testing.assert_array_equal(np.array(unpack(mx.array(in_words(numbers, bits)), bits)), numbers)


@pytest.mark.parametrize("bits", [3, 4])
def test_zeros_of_few_outputs_leave_their_last_word_open(tmp_path: Path, bits: int) -> None:
    """Groups of 16, which MLX has none of, so that the numbers are decoded."""
    weight = CHANCE.standard_normal((12, 32), dtype=np.float32)
    section = {"quant_method": "gptq", "bits": bits, "group_size": 16}
    coded = gptq(bits, 16, 1)(weight)
    zeros = coded.parts["qzeros"]
    assert zeros.array.shape[-1] == -(-12 * bits // 32)
    tensors = {f"a.{end}": part for end, part in coded.parts.items()}
    with planned([tensors], section, tmp_path / "gptq") as plan:
        found = loaded(plan)["a.weight"]
    np.testing.assert_allclose(found, coded.values, rtol=2**-8, atol=1e-6)
    group = {"targets": ["Linear"], "weights": {"num_bits": bits}}
    coded = integers(bits, 16, zeros=True)(weight)
    tensors = {f"a.{end}": part for end, part in coded.parts.items()}
    compressed = {"quant_method": "compressed-tensors", "config_groups": {"group": group}}
    with planned([tensors], compressed, tmp_path / "compressed") as plan:
        found = loaded(plan)["a.weight"]
    np.testing.assert_allclose(found, coded.values, rtol=2**-8, atol=1e-6)


def test_words_that_end_in_part_of_a_number(tmp_path: Path) -> None:
    tensors = {
        "a.qweight": labelled(np.zeros((4, 8), np.int32)),
        "a.qzeros": labelled(np.zeros((1, 1), np.int32)),
        "a.scales": labelled(np.ones((1, 8), np.float16)),
        "a.g_idx": labelled(np.zeros(42, np.int32)),
    }
    section = {"quant_method": "gptq", "bits": 3, "group_size": -1}
    with (
        pytest.raises(PlanError, match=r"the codes of a quantized weight are I32 \[4, 8\]"),
        planned([tensors], section, tmp_path) as plan,
    ):
        plan.load(threads=1)


@pytest.mark.parametrize("version", ["gemv", "gemv_fast", "marlin"])
def test_other_orders_of_awq_are_refused_by_name(tmp_path: Path, version: str) -> None:
    made = make(tmp_path, "llama", VENDORS["awq"])
    section = {**made.config["quantization_config"], "version": version}
    rewrite(made, made.tensors, {**made.config, "quantization_config": section})
    with pytest.raises(ConfigError, match=f"version is '{version}'"):
        wl.load(made.path)


def test_an_infinite_code_is_refused(tmp_path: Path) -> None:
    made = make(tmp_path, "llama", VENDORS["fp8 wide"])
    name = "model.layers.1.self_attn.v_proj.weight"
    made.tensors[name].array[0, 0] = 0x7C
    rewrite(made, made.tensors)
    with pytest.raises(PlanError, match=rf"{name}.*a code is infinite"):
        wl.load(made.path)
