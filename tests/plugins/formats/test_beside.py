"""Vendors' formats among ranks, with an adapter beside them, lazily, and cast."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

import weightloom as wl
from tests.cases.fixtures import filled
from tests.cases.test_adapter_load import adapter
from tests.plugins.formats.test_formats import numbers_of
from tests.plugins.formats.vendors import VENDORS, make
from tests.runtime.loading.test_ranks import parts
from weightloom.plugins.modules.binding import parameters

SOME = ("fp8 blocks", "modelopt nvfp4", "gptq")
KINDS = [kind if kind in SOME else pytest.param(kind, marks=pytest.mark.thorough) for kind in VENDORS]
# Half of each is whole groups, for a scale a row too, which MLX has for each 128 columns at most.
SIZES = ("hidden_size", "intermediate_size", "moe_intermediate_size")
WIDE = dict.fromkeys(SIZES, 256) | {"head_dim": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
IDS = list(range(5, 17))


@pytest.mark.parametrize("model", ["llama", pytest.param("qwen3_moe", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kind", KINDS)
def test_ranks_give_what_one_process_gives(tmp_path: Path, model: str, kind: str) -> None:
    made = make(tmp_path, model, VENDORS[kind], **WIDE)
    wanted = np.array(wl.load(made.path).model(mx.array([IDS, IDS[::-1]])))
    for part in parts(made.path, "tensor"):
        np.testing.assert_allclose(np.array(part["logits"]), wanted, rtol=2e-3, atol=2e-3)
        assert part["held"] < part["whole"]


@pytest.mark.parametrize("model", ["llama", pytest.param("qwen3_moe", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_stays_beside_what_is_packed(tmp_path: Path, model: str, kind: str) -> None:
    made = make(tmp_path, model, VENDORS[kind])
    module = "model.layers.0.self_attn.q_proj"
    shapes = {f"base_model.model.{module}.lora_A.weight": (2, 64), f"base_model.model.{module}.lora_B.weight": (64, 2)}
    factors = filled(shapes, seed=3)
    m = wl.load(made.path, adapter=adapter(tmp_path / "lora", factors))
    a, b = (factors[name] for name in shapes)
    held = numbers_of(wl.load(made.path))
    held[f"{module}.weight"] = held[f"{module}.weight"] + 2 * b @ a
    dense = wl.load(made.dense)
    dense.model.load_weights([(name, mx.array(held[name])) for name in parameters(dense.model)])
    ids = mx.array([IDS])
    np.testing.assert_allclose(np.array(m.model(ids)), np.array(dense.model(ids)), rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("kind", ["fp8 blocks", pytest.param("gptq", marks=pytest.mark.thorough)])
def test_what_is_read_when_it_is_used_is_the_same(tmp_path: Path, kind: str) -> None:
    made = make(tmp_path, "qwen3_moe", VENDORS[kind])
    m = wl.load(made.path, lazy=True)
    np.testing.assert_array_equal(
        np.array(m.model(mx.array([IDS]))), np.array(wl.load(made.path).model(mx.array([IDS])))
    )


@pytest.mark.parametrize("kind", ["fp8 rows", "modelopt nvfp4"])
def test_factors_of_rows_keep_their_dtype(tmp_path: Path, kind: str) -> None:
    made = make(tmp_path, "llama", VENDORS[kind])
    m = wl.load(made.path, dtype="float16")
    dtypes = {name: array.dtype for name, array in parameters(m.model).items()}
    assert {dtype for name, dtype in dtypes.items() if name.endswith("global_scale")} == {mx.float32}
    assert dtypes["model.norm.weight"] == mx.float16
    wanted = np.array(wl.load(made.path).model(mx.array([IDS])))
    np.testing.assert_allclose(np.array(m.model(mx.array([IDS])).astype(mx.float32)), wanted, rtol=0.05, atol=0.5)
