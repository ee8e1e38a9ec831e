"""A dial at zero is the base bit for bit: each kind of change, in each dtype, on plain weights and packed ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import Array, Arrays, const, filled
from tests.cases.test_adapter_kinds import EMBEDDING, embedding
from tests.cases.test_adapter_load import TOKENS, Q, adapter, pair
from tests.cases.test_bare_parameters import of_layer
from tests.runtime.adapting.test_fusing import packed
from tests.runtime.models import write_model
from weightloom.runtime.loading.loading import load

DORA = {f"{Q}.lora_magnitude_vector": const(2, 32), f"{EMBEDDING}.lora_magnitude_vector": const(3, 32)}


def experts() -> Arrays:
    found: Arrays = {}
    for n in range(4):
        module = f"base_model.model.model.layers.1.block_sparse_moe.experts.{n}.w2"
        shapes = {f"{module}.lora_A.weight": (2, 24), f"{module}.lora_B.weight": (32, 2)}
        found |= filled(shapes, seed=n) | {f"{module}.lora_magnitude_vector": const(2 + n, 32)}
    return found


KINDS: dict[str, tuple[str, Callable[[], Arrays], dict[str, Any]]] = {
    "low rank": ("llama", lambda: pair() | embedding(), {}),
    "lengths of rows and columns": ("llama", lambda: pair() | embedding() | DORA, {"use_dora": True}),
    "whole": ("llama", lambda: pair() | {"base_model.model.lm_head.weight": const(1, 260, 32)}, {}),
    "stacks": ("mixtral", of_layer, {"target_parameters": ["gate_up_proj", "down_proj"]}),
    "experts, lengths of rows": ("mixtral", experts, {"use_dora": True}),
}


def bits(m: Any) -> Array:
    return np.array(m.model(TOKENS).astype(mx.float32))


# Stacks of narrow floats are multiplied on a GPU only.
CASES = [(k, d) for k in KINDS for d in ("float32", "bfloat16", "float16") if KINDS[k][0] == "llama" or d == "float32"]


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_zero_is_the_base_and_the_dial_is_live(kind: str, dtype: str, tmp_path: Path) -> None:
    family, arrays, values = KINDS[kind]
    base = write_model(tmp_path / "base", family)
    made = adapter(tmp_path / "lora", arrays(), **values)
    plain = bits(load(base, dtype))
    m = load(base, dtype, adapter=[(made, 0.0)])
    assert m.adapters is not None
    assert np.array_equal(bits(m), plain)
    m.adapters.use("lora")
    full = bits(m)
    assert not np.array_equal(full, plain)
    m.adapters.set({"lora": 0.5})
    assert not np.array_equal(bits(m), full)
    m.adapters.use()
    assert np.array_equal(bits(m), plain)
    m.adapters.use("lora")
    assert np.array_equal(bits(m), full)


def test_lengths_of_packed_rows(tmp_path: Path) -> None:
    """They are those of the unpacked weight, beside which the change is made in full."""
    base = packed(write_model(tmp_path / "base", "llama"), tmp_path / "packed")
    made = adapter(tmp_path / "lora", pair() | {f"{Q}.lora_magnitude_vector": const(2, 32)}, use_dora=True)
    m, plain = load(base, adapter=made), load(base)
    layer = plain.model.model.layers[0].self_attn.q_proj
    unpacked = np.array(mx.dequantize(layer.weight, layer.scales, layer.biases, layer.group_size, layer.bits))
    whole = unpacked + 2 * pair()[f"{Q}.lora_B.weight"] @ pair()[f"{Q}.lora_A.weight"]
    wanted = 2 * whole / np.linalg.norm(whole, axis=1, keepdims=True)
    x = mx.random.normal((3, 32))
    changed = m.model.model.layers[0].self_attn.q_proj
    assert np.allclose(np.array(changed(x)), np.array(x) @ wanted.T, atol=1e-3)
    assert m.adapters is not None
    m.adapters.use()
    assert np.array_equal(bits(m), bits(plain))
