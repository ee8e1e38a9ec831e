"""Latent attention in the layout of mlx-lm: packed halves are read as what they stand for, and written back."""

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.families.experts_b import FAMILIES
from weightloom.engine import PlanError
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.testing import Sample, write_checkpoint
from weightloom.runtime.loading.loading import load

HEADS, KEYS, VALUES, RANK = 4, 32, 64, 32
CONFIG: dict[str, Any] = {
    **next(family.config(family.cases[0]) for family in FAMILIES if family.model_type == "kimi_k2"),
    "num_hidden_layers": 1,
    "qk_nope_head_dim": KEYS,
    "v_head_dim": VALUES,
}
PLACE = "model.layers.0.self_attn"
HOW = [("affine", 32, 4), ("affine", 32, 8), ("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)]


def packed(name: str, matrix: mx.array, how: tuple[str, int, int]) -> dict[str, mx.array]:
    mode, size, bits = how
    parts = mx.quantize(matrix, size, bits, mode)
    return {f"{name}.{part}": array for part, array in zip(("weight", "scales", "biases"), parts, strict=False)}


def said(how: tuple[str, int, int]) -> dict[str, Any]:
    mode, size, bits = how
    return {"group_size": size, "bits": bits, "mode": mode}


def halves() -> tuple[mx.array, mx.array]:
    mx.random.seed(4)
    return mx.random.normal((HEADS, RANK, KEYS)), mx.random.normal((HEADS, VALUES, RANK))


def written(folder: Path, parts: dict[str, mx.array], how: tuple[str, int, int] | None = None) -> Path:
    """Write a checkpoint in the layout of mlx-lm with these parts of attention; the head is packed as they are."""
    sample = Sample("kimi_k2", CONFIG, layout="mlx")
    write_checkpoint(sample, PluginManager().architecture("kimi_k2"), folder)
    (file,) = folder.glob("*.safetensors")
    tensors = {name: array for name, array in mx.load(str(file)).items() if not name.startswith(f"{PLACE}.embed_q")}
    tensors |= {f"{PLACE}.{name}": array for name, array in parts.items()}
    if how is not None:
        tensors |= packed("lm_head", tensors["lm_head.weight"], how)
        (folder / "config.json").write_text(json.dumps({**CONFIG, "quantization": said(how)}))
    mx.save_safetensors(str(file), tensors, {"format": "mlx"})
    return folder


def joined(keys: mx.array, values: mx.array) -> np.ndarray:
    rows = [np.concatenate([np.array(k).T, np.array(v)]) for k, v in zip(keys, values, strict=True)]
    return np.concatenate(rows)


def test_floats_are_joined_head_by_head(tmp_path: Path) -> None:
    keys, values = halves()
    m = load(written(tmp_path / "model", {"embed_q.weight": keys, "unembed_out.weight": values}))
    assert np.array_equal(np.array(m.model.model.layers[0].self_attn.kv_b_proj.weight), joined(keys, values))


@pytest.mark.parametrize("how", HOW)
def test_words_are_unpacked_and_written_back(how: tuple[str, int, int], tmp_path: Path) -> None:
    parts: dict[str, mx.array] = {}
    dense = []
    for name, half in zip(("embed_q", "unembed_out"), halves(), strict=True):
        made = packed(name, half, how)
        parts |= made
        dense.append(mx.dequantize(*made.values(), **said(how)).astype(mx.float32))
    source = written(tmp_path / "model", parts, how)
    m = load(source)
    found = m.model.model.layers[0].self_attn.kv_b_proj.weight
    assert np.array_equal(np.array(found.astype(mx.float32)), joined(*dense))
    m.save(tmp_path / "saved")
    before, after = (mx.load(str(next(place.glob("*.safetensors")))) for place in (source, tmp_path / "saved"))
    assert before.keys() == after.keys()
    assert all(mx.array_equal(before[name], after[name]) for name in before)


def test_one_half_may_be_packed_alone(tmp_path: Path) -> None:
    keys, values = halves()
    made = packed("unembed_out", values, HOW[0])
    m = load(written(tmp_path / "model", {"embed_q.weight": keys, **made}, HOW[0]))
    found = np.array(m.model.model.layers[0].self_attn.kv_b_proj.weight)
    assert np.array_equal(found, joined(keys, mx.dequantize(*made.values(), **said(HOW[0]))))


def test_halves_of_other_sizes_are_refused(tmp_path: Path) -> None:
    keys, values = halves()
    with pytest.raises(PlanError, match="JoinHalves"):
        load(written(tmp_path / "model", {"embed_q.weight": keys[:, :, 1:], "unembed_out.weight": values}))


def test_what_is_packed_whole_is_not_cut_in_two(tmp_path: Path) -> None:
    source = tmp_path / "model"
    write_checkpoint(Sample("kimi_k2", CONFIG), PluginManager().architecture("kimi_k2"), source)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("schema: 1\nrecipe: all\nabout: x\nmodules:\n- {pattern: '**', bits: 4, group_size: 32}\n")
    m = load(source, quantize=str(recipe))
    with pytest.raises(PlanError, match="the product of latent attention is U32"):
        m.save(tmp_path / "saved", layout="mlx")
