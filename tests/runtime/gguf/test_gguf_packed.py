"""A GGUF whose matrices are of every kind that stays packed: it answers as the numbers of the `gguf` package do."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.gguf_files import BLOCKS, KEYS, Tensor, array, noise, write_gguf
from weightloom.runtime import load
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert

WIDE = {"llama.embedding_length": 256, "llama.feed_forward_length": 512, "llama.rope.dimension_count": 64}
KINDS = {
    "token_embd": ("Q5_K", (12, 256)),
    "blk.0.attn_q": ("Q4_K", (256, 256)),
    "blk.0.attn_k": ("Q5_0", (128, 256)),
    "blk.0.attn_v": ("Q5_1", (128, 256)),
    "blk.0.attn_output": ("Q8_0", (256, 256)),
    "blk.0.ffn_up": ("MXFP4", (512, 256)),
    "blk.0.ffn_gate": ("Q4_1", (512, 256)),
    "blk.0.ffn_down": ("Q6_K", (256, 512)),
}
NORMS = [array(f"{name}.weight", [1.0] * 256) for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm")]
IDS = mx.array([[1, 2, 3]])


def packed(name: str) -> Tensor:
    kind, shape = KINDS[name]
    made = noise(f"{name}.weight", kind, shape, seed=len(name))
    if kind != "MXFP4":
        return made
    raw = np.frombuffer(made.data, np.uint8).reshape(-1, 17).copy()
    raw[:, 0] = 118
    return Tensor(made.name, kind, shape, raw.tobytes())


def as_floats(tensor: Tensor) -> Tensor:
    gguf = pytest.importorskip("gguf")
    block, nbytes = BLOCKS[tensor.type]
    raw = np.frombuffer(tensor.data, np.uint8).reshape(*tensor.shape[:-1], tensor.shape[-1] // block * nbytes)
    return array(tensor.name, gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[tensor.type]))


def test_it_answers_as_its_numbers_do_and_so_does_what_it_is_converted_to(tmp_path: Path) -> None:
    keys = {**KEYS, **WIDE}
    tensors = [packed(name) for name in KINDS]
    m = load(write_gguf(tmp_path / "packed.gguf", keys, [*NORMS, *tensors]))
    dense = load(write_gguf(tmp_path / "dense.gguf", keys, [*NORMS, *map(as_floats, tensors)]))
    assert m.model.model.layers[0].mlp.up_proj.mode == "mxfp4"  # type: ignore[attr-defined]
    assert m.model.model.layers[0].self_attn.q_proj.bits == 4  # type: ignore[attr-defined]
    wanted = np.array(dense.model(IDS))
    np.testing.assert_allclose(np.array(m.model(IDS)), wanted, atol=1e-3 * np.abs(wanted).max())
    convert(tmp_path / "packed.gguf", Order(tmp_path / "out", "mlx"), Wish())
    assert mx.array_equal(load(tmp_path / "out").model(IDS), m.model(IDS)).item()
