"""Vendors' formats through `convert` and `save`: what mlx-lm knows stays packed, all else becomes floats, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import weightloom as wl
from tests.plugins.formats.codes import Tensors, labelled, write
from tests.plugins.formats.vendors import VENDORS, Made, make
from tests.runtime.support import Cli
from weightloom.engine.errors import NotInvertible

IDS = [[1, 5, 7, 2]]
# What mlx-lm's readers ask a config for, beside what is there.
MLX_LM = {
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "tie_word_embeddings": False,
    "decoder_sparse_step": 1,
    "norm_topk_prob": True,
    "intermediate_size": 96,
}
PACKED = {
    "compressed int4": {"group_size": 32, "bits": 4, "mode": "affine"},
    "compressed mxfp4": {"group_size": 32, "bits": 4, "mode": "mxfp4"},
    "mxfp4": {"group_size": 32, "bits": 4, "mode": "mxfp4"},
    "gptq": {"group_size": 32, "bits": 4, "mode": "affine"},
    "awq": {"group_size": 32, "bits": 4, "mode": "affine"},
}
FLOATS = (
    "fp8 blocks",
    "compressed blocks",
    "fp8 wide",
    "fp8 rows",
    "modelopt nvfp4",
    "compressed nvfp4",
    "compressed floats",
)


def made(folder: Path, kind: str, model: str = "qwen3_moe") -> Made:
    return make(folder, model, VENDORS[kind], **MLX_LM)


def config(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


def logits(path: Path) -> np.ndarray[Any, Any]:
    return np.array(wl.load(path).model(mx.array(IDS)))


@pytest.mark.parametrize("kind", PACKED)
def test_the_mlx_layout_keeps_what_mlx_packs_so_and_goes_back(tmp_path: Path, cli: Cli, kind: str) -> None:
    source = made(tmp_path, kind)
    assert cli("convert", source.path, tmp_path / "mlx", "--layout", "mlx").code == 0
    written = config(tmp_path / "mlx")
    assert written["quantization"] == written["quantization_config"] == PACKED[kind]
    np.testing.assert_array_equal(logits(tmp_path / "mlx"), logits(source.path))
    assert cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf").code == 0
    assert same(source.path, tmp_path / "back")


@pytest.mark.parametrize("kind", FLOATS)
def test_what_others_have_no_form_for_becomes_floats_and_goes_back(tmp_path: Path, cli: Cli, kind: str) -> None:
    source = made(tmp_path, kind)
    assert cli("convert", source.path, tmp_path / "mlx", "--layout", "mlx").code == 0
    assert not {"quantization", "quantization_config"} & config(tmp_path / "mlx").keys()
    np.testing.assert_allclose(logits(tmp_path / "mlx"), logits(source.dense), rtol=0.1, atol=0.3)
    assert cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf").code == 0
    assert same(source.path, tmp_path / "back")


@pytest.mark.parametrize("kind", ["fp8 blocks", "modelopt nvfp4", "compressed int4", "gptq", "mxfp4"])
@pytest.mark.parametrize("wish", [("--layout", "hf"), ("--dequantize",)])
def test_floats_leave_no_trace_of_a_format(tmp_path: Path, cli: Cli, kind: str, wish: tuple[str, ...]) -> None:
    source = made(tmp_path, kind)
    assert cli("convert", source.path, tmp_path / "hf", *wish).code == 0
    assert not {"quantization", "quantization_config"} & config(tmp_path / "hf").keys()
    found = mx.load(str(tmp_path / "hf" / "model.safetensors"))
    assert set(found) == set(source.values)
    for name, values in source.values.items():
        wanted = mx.array(values).astype(found[name].dtype).astype(mx.float32)  # type: ignore[call-overload, index]
        np.testing.assert_array_equal(np.array(found[name].astype(mx.float32)), np.array(wanted))  # type: ignore[call-overload, index]


def test_dequantized_while_loading(tmp_path: Path) -> None:
    source = made(tmp_path, "fp8 blocks")
    m = wl.load(source.path, quantize="dense")
    assert not [name for name, array in m.stored.items() if array.dtype in ("U32", "U8")]
    np.testing.assert_allclose(np.array(m.model(mx.array(IDS))), logits(source.dense), rtol=0.1, atol=0.3)


def test_a_loaded_model_is_saved_in_the_layout_of_mlx(tmp_path: Path) -> None:
    source = made(tmp_path, "compressed int4")
    m = wl.load(source.path)
    m.save(tmp_path / "mlx", layout="mlx")
    assert config(tmp_path / "mlx")["quantization"] == PACKED["compressed int4"]
    np.testing.assert_array_equal(logits(tmp_path / "mlx"), logits(source.path))


@pytest.mark.parametrize(("kind", "layout"), [("modelopt nvfp4", "mlx"), ("compressed int4", "hf"), ("mxfp4", "hf")])
def test_a_layout_without_a_place_for_it_is_refused_by_name(tmp_path: Path, kind: str, layout: str) -> None:
    source = made(tmp_path, kind)
    m = wl.load(source.path)
    with pytest.raises(NotInvertible, match=r"_proj is 4 bits in groups of .* has no place for that"):
        m.save(tmp_path / "saved", layout=layout)
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("layout", ["mlx", "hf", "canonical"])
def test_an_unknown_method_is_refused_by_name(tmp_path: Path, cli: Cli, layout: str) -> None:
    source = made(tmp_path, "gptq")
    changed = {**source.config, "quantization_config": {"quant_method": "quip"}}
    (source.path / "config.json").write_text(json.dumps(changed))
    ran = cli("convert", source.path, tmp_path / "target", "--layout", layout)
    assert ran.code == 1
    assert "no installed quantization format serves quant_method 'quip'" in ran.err
    assert not (tmp_path / "target").exists()


def test_rules_that_speak_of_a_vendor_s_tensors_take_them_as_they_are(tmp_path: Path, cli: Cli) -> None:
    """gpt-oss, whose config says too little for its architecture: its rules lead blocks to mlx-lm's words."""
    chance, stem = np.random.default_rng(3), "model.layers.0.mlp.experts"
    tensors = {}
    for name, rows in (("gate_up_proj", 128), ("down_proj", 64)):
        tensors[f"{stem}.{name}_blocks"] = labelled(chance.integers(0, 256, (2, rows, 2, 16), np.uint8))
        tensors[f"{stem}.{name}_scales"] = labelled(chance.integers(100, 140, (2, rows, 2), np.uint8))
    path = write_raw(tmp_path / "gpt_oss", tensors, "gpt_oss", {"quant_method": "mxfp4"})
    assert cli("convert", path, tmp_path / "mlx", "--layout", "mlx").code == 0
    found = mx.load(str(tmp_path / "mlx" / "model.safetensors"))
    parts = {f"{stem}.{name}_proj.{part}" for name in ("gate", "up", "down") for part in ("weight", "scales")}
    assert set(found) == parts
    blocks = tensors[f"{stem}.down_proj_blocks"].array
    assert np.array(found[f"{stem}.down_proj.weight"]).tobytes() == blocks.tobytes()  # type: ignore[call-overload, index]
    assert cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf").code == 0
    assert same(path, tmp_path / "back")


def test_a_family_without_an_architecture_is_unpacked_by_rules_alone(tmp_path: Path, cli: Cli) -> None:
    chance, code = np.random.default_rng(3), VENDORS["compressed int4"].code
    shapes = {"gate_proj": (32, 64), "up_proj": (32, 64), "down_proj": (64, 32)}
    tensors = {
        f"model.layers.0.mlp.experts.{expert}.{name}.{end}": part
        for expert in range(2)
        for name, shape in shapes.items()
        for end, part in code(chance.standard_normal(shape, dtype=np.float32)).parts.items()
    }
    path = write_raw(tmp_path / "mellum", tensors, "mellum", VENDORS["compressed int4"].section or {})
    assert cli("convert", path, tmp_path / "mlx", "--layout", "mlx").code == 0
    assert config(tmp_path / "mlx")["quantization"] == PACKED["compressed int4"]
    found = mx.load(str(tmp_path / "mlx" / "model.safetensors"))
    stack = "model.layers.0.mlp.switch_mlp"
    assert set(found) == {f"{stack}.{name}.{part}" for name in shapes for part in ("weight", "scales", "biases")}
    assert cli("convert", tmp_path / "mlx", tmp_path / "back", "--layout", "hf").code == 0
    assert same(path, tmp_path / "back")


def write_raw(folder: Path, tensors: Tensors, model_type: str, section: Mapping[str, Any]) -> Path:
    write(folder / "model.safetensors", tensors)
    content = {"model_type": model_type, "num_hidden_layers": 1, "quantization_config": dict(section)}
    (folder / "config.json").write_text(json.dumps(content))
    return folder


@pytest.mark.oracle
@pytest.mark.parametrize("model", ["llama", pytest.param("qwen3_moe", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kind", [*PACKED, *FLOATS])
def test_mlx_lm_has_the_same_logits(tmp_path: Path, cli: Cli, kind: str, model: str) -> None:
    from mlx_lm.utils import load_model

    source = made(tmp_path, kind, model)
    assert cli("convert", source.path, tmp_path / "mlx", "--layout", "mlx").code == 0
    theirs, _ = load_model(tmp_path / "mlx")
    np.testing.assert_allclose(np.array(theirs(mx.array(IDS))), logits(tmp_path / "mlx"), rtol=2e-3, atol=2e-3)


def same(path: Path, back: Path) -> bool:
    names = ("model.safetensors", "config.json")
    return all((path / name).read_bytes() == (back / name).read_bytes() for name in names)


@pytest.mark.parametrize("kind", ["fp8 blocks", "fp8 rows", "modelopt nvfp4", "gptq"])
def test_the_canonical_layout_loads_again(tmp_path: Path, cli: Cli, kind: str) -> None:
    source = made(tmp_path, kind, "llama")
    assert cli("convert", source.path, tmp_path / "out", "--layout", "canonical").code == 0
    np.testing.assert_allclose(logits(tmp_path / "out"), logits(source.path), rtol=0.1, atol=0.3)


@pytest.mark.parametrize("kind", ["fp8 blocks", "fp8 rows", "modelopt nvfp4", "gptq"])
def test_what_a_vendor_packed_is_not_packed_again_unless_that_is_asked_for(tmp_path: Path, cli: Cli, kind: str) -> None:
    source = made(tmp_path, kind, "llama")
    ran = cli("convert", source.path, tmp_path / "out", "--quantize", "4bit")
    assert ran.code == 2
    assert "21 modules are quantized already" in ran.err
    assert not (tmp_path / "out").exists()
    assert cli("convert", source.path, tmp_path / "out", "--quantize", "4bit", "--requantize").code == 0
    assert config(tmp_path / "out")["quantization"] == {"group_size": 64, "bits": 4, "mode": "affine"}
