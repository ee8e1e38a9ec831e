"""The GGUF layout of llama: names, the rows of q and k, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.gguf_files import BLOCKS, Tensor, array, write_gguf
from weightloom.engine import Plan, build_plan
from weightloom.engine.gguf import open_gguf
from weightloom.rules import load_rules

HEADS, KV_HEADS, HEAD_DIM, HIDDEN, INNER, VOCABULARY = 4, 2, 8, 32, 64, 10
CONFIG = {"num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "hidden_size": HIDDEN}
Array = np.ndarray[Any, np.dtype[np.float32]]

SHAPES = {
    "model.embed_tokens.weight": (VOCABULARY, HIDDEN),
    "model.norm.weight": (HIDDEN,),
    "lm_head.weight": (VOCABULARY, HIDDEN),
}
for LAYER in range(2):
    AT = f"model.layers.{LAYER}"
    SHAPES |= {
        f"{AT}.input_layernorm.weight": (HIDDEN,),
        f"{AT}.post_attention_layernorm.weight": (HIDDEN,),
        f"{AT}.self_attn.q_proj.weight": (HEADS * HEAD_DIM, HIDDEN),
        f"{AT}.self_attn.q_proj.bias": (HEADS * HEAD_DIM,),
        f"{AT}.self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
        f"{AT}.self_attn.k_proj.bias": (KV_HEADS * HEAD_DIM,),
        f"{AT}.self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
        f"{AT}.self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD_DIM),
        f"{AT}.mlp.gate_proj.weight": (INNER, HIDDEN),
        f"{AT}.mlp.up_proj.weight": (INNER, HIDDEN),
        f"{AT}.mlp.down_proj.weight": (HIDDEN, INNER),
    }

# In this order: a longer name before the one that it begins with.
SPELLINGS = [
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
    ("lm_head", "output"),
    ("model.layers", "blk"),
    ("input_layernorm", "attn_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
]


def published() -> dict[str, Array]:
    rng = np.random.default_rng(7)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def there(name: str) -> str:
    for ours, theirs in SPELLINGS:
        name = name.replace(ours, theirs)
    return name


def turned(name: str, values: Array) -> Array:
    """What llama.cpp's converter does: the halves of each head become neighbours."""
    heads = HEADS if ".q_proj" in name else KV_HEADS if ".k_proj" in name else None
    if heads is None:
        return values
    halves = values.reshape(heads, 2, len(values) // heads // 2, *values.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(values.shape)


def mapped(path: Path) -> Plan:
    return build_plan(open_gguf(path), load_rules("llama", layout="gguf"), config=CONFIG)


def test_every_name_and_row_comes_to_its_place(tmp_path: Path) -> None:
    weights = published()
    tensors = [array(there(name), turned(name, values)) for name, values in weights.items()]
    plan = mapped(write_gguf(tmp_path / "m.gguf", {}, [*tensors, array("rope_freqs.weight", [1.0] * 4)]))
    plan.check()
    assert [record.name for record in plan.report.dropped] == ["rope_freqs.weight"]
    loaded = plan.load()
    assert sorted(loaded) == sorted(weights)
    for name, values in weights.items():
        assert np.array_equal(np.array(loaded[name]), values), name


@pytest.mark.parametrize(("kind", "bits"), [("Q4_0", 4), ("Q4_1", 4), ("Q8_0", 8)])
def test_rows_of_weight_scales_and_biases_move_alike(tmp_path: Path, kind: str, bits: int) -> None:
    gguf = pytest.importorskip("gguf")
    number = gguf.GGMLQuantizationType[kind]
    name = "model.layers.0.self_attn.k_proj.weight"
    values = published()[name]
    raw = gguf.quants.quantize(turned(name, values), number)
    rounded = gguf.quants.dequantize(gguf.quants.quantize(values, number), number)
    assert raw.shape[-1] == HIDDEN // BLOCKS[kind][0] * BLOCKS[kind][1]
    loaded = mapped(
        write_gguf(tmp_path / "m.gguf", {}, [Tensor(there(name), kind, values.shape, raw.tobytes())])
    ).load()
    stem = name.removesuffix(".weight")
    scales, biases = (loaded[f"{stem}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
    with mx.stream(mx.cpu):
        found = mx.dequantize(loaded[name], scales, biases, 32, bits)
        assert np.array_equal(np.array(found), rounded)


def test_the_way_back_gives_the_file_s_tensors(tmp_path: Path) -> None:
    weights = published()
    tensors = [array(there(name), turned(name, values)) for name, values in weights.items()]
    plan = mapped(write_gguf(tmp_path / "m.gguf", {}, tensors))
    assert plan.invertible
    plan.save(plan.load(), tmp_path / "back")
    saved = mx.load(str(tmp_path / "back" / "model.safetensors"))
    assert sorted(saved) == sorted(tensor.name for tensor in tensors)
    for tensor in tensors:
        assert np.array(saved[tensor.name]).tobytes() == tensor.data, tensor.name
