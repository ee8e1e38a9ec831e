"""Scales as float32 while the CPU computes, and as they were in the file."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import write
from tests.runtime.models import config_of, write_model
from weightloom.engine import Checkpoint, RuleSet, build_plan
from weightloom.plugins.modules.binding import parameters
from weightloom.runtime import load
from weightloom.runtime.loading.widening import widened

QUANTIZED = {"quantization": {"group_size": 32, "bits": 4}}


def packed_llama(folder: Path, dtype: mx.Dtype = mx.float16, **sizes: int) -> Path:
    """A tiny Llama whose projections are packed, with half-precision scales, as mlx-lm writes it."""
    config = config_of("llama", **QUANTIZED, **sizes)
    write_model(folder, "llama", config)
    stored: dict[str, mx.array] = mx.load(str(folder / "model.safetensors"))  # type: ignore[assignment]
    arrays: dict[str, mx.array] = {}
    for name, array in stored.items():
        path = name.removesuffix(".weight")
        if array.ndim == 2 and array.shape[1] % 32 == 0:
            packed = mx.quantize(array.astype(dtype), group_size=32, bits=4)
            arrays |= {
                f"{path}.{part}": each for part, each in zip(("weight", "scales", "biases"), packed, strict=True)
            }
        else:
            arrays[name] = array
    mx.save_safetensors(str(folder / "model.safetensors"), arrays, metadata={"format": "mlx"})
    return folder


@pytest.mark.skipif(mx.default_device() != mx.Device(mx.cpu), reason="widening is for the CPU")
@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
def test_scales_run_wide_and_are_saved_as_they_were(tmp_path: Path, dtype: mx.Dtype) -> None:
    source = packed_llama(tmp_path / "a", dtype)
    m = load(source)
    found, stored = parameters(m.model), mx.load(str(source / "model.safetensors"))
    scales = [name for name in found if name.endswith((".scales", ".biases"))]
    assert len(scales) == 2 * (3 * 6 + 2)
    for name in scales:
        assert found[name].dtype == mx.float32 and stored[name].dtype == dtype
        assert mx.array_equal(found[name], stored[name].astype(mx.float32)).item()
    assert found["model.layers.0.mlp.gate_proj.weight"].dtype == mx.uint32
    m.save(tmp_path / "b")
    assert (tmp_path / "b" / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    m.save(tmp_path / "c", layout="hf")
    again = mx.load(str(tmp_path / "c" / "model.safetensors"))
    assert {name: array.dtype for name, array in again.items()} == {n: a.dtype for n, a in stored.items()}
    assert all(mx.array_equal(again[name], stored[name]).item() for name in stored)


def test_a_quantized_model_computes_what_its_unpacked_weights_do(tmp_path: Path) -> None:
    source = packed_llama(tmp_path / "a")
    stored: dict[str, mx.array] = mx.load(str(source / "model.safetensors"))  # type: ignore[assignment]
    plain = {}
    for name, array in stored.items():
        path = name.removesuffix(".weight")
        if f"{path}.scales" in stored and name.endswith(".weight"):
            wide = (stored[f"{path}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
            plain[name] = np.array(mx.dequantize(array, *wide, group_size=32, bits=4))
        elif not name.endswith((".scales", ".biases")):
            plain[name] = np.array(array)
    other = write_model(tmp_path / "b", "llama")
    write(other / "model.safetensors", plain)
    tokens = mx.array([[1, 2, 3, 4, 5]])
    first, second = load(source).model(tokens), load(other).model(tokens)
    assert mx.abs(first - second).max().item() <= 1e-4 * max(1.0, mx.abs(second).max().item())


def test_on_another_device_nothing_is_widened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Checkpoint.open(packed_llama(tmp_path)) as checkpoint:
        plan = build_plan(checkpoint, RuleSet())
        monkeypatch.setattr(mx, "default_device", lambda: mx.Device(mx.gpu))
        assert widened(plan) is plan
