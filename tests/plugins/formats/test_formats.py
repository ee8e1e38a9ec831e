"""Every vendor's format on a dense model and one of experts: numbers, logits, ranks, and the way back."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

import weightloom as wl
from tests.plugins.formats.codes import Array
from tests.plugins.formats.vendors import VENDORS, Made, make
from weightloom.plugins.layers.packing import Quantization
from weightloom.plugins.modules.binding import parameters
from weightloom.runtime.model import LoadedModel

MODELS = ("llama", pytest.param("qwen3_moe", marks=pytest.mark.thorough))
IDS = [[1, 5, 7, 2]]


@pytest.fixture(params=VENDORS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def numbers_of(m: LoadedModel) -> dict[str, Array]:
    """What the parameters mean, by MLX's own decoding; stacks under their names."""
    params = parameters(m.model)
    found: dict[str, Array] = {}
    for name, array in params.items():
        stem = name.removesuffix(".weight")
        joint = "." if stem != name else "_"
        scales = params.get(f"{stem}{joint}scales")
        if scales is None:
            found[name] = np.array(array.astype(mx.float32))
            continue
        how = packing(m.model, stem)
        values = mx.dequantize(
            array, scales, params.get(f"{stem}{joint}biases"), how.group_size, how.bits, how.mode, dtype=mx.float32
        )
        found[name] = np.array(values * params.get(f"{stem}{joint}global_scale", mx.array(1.0)))
    return found


def packing(module: nn.Module, stem: str) -> Quantization:
    """How a layer of that path, or a stack of a layer, says that it is packed."""
    modules = dict(module.named_modules())
    if stem in modules:
        return Quantization(modules[stem].bits, modules[stem].group_size, modules[stem].mode)
    path, _, name = stem.rpartition(".")
    found: Quantization = modules[path].how[name]
    return found


@pytest.mark.parametrize("model", MODELS)
def test_numbers_are_those_of_the_format_and_the_bytes_come_back(tmp_path: Path, model: str, kind: str) -> None:
    vendor = VENDORS[kind]
    made = make(tmp_path, model, vendor)
    m, dense = wl.load(made.path), wl.load(made.dense)
    found, wanted = numbers_of(m), numbers_of(dense)
    assert any(name.endswith(("scales", "_scales")) for name in parameters(m.model))
    for name, values in wanted.items():
        if vendor.exact:
            np.testing.assert_allclose(found[name], values, rtol=1e-6, err_msg=name)
        else:
            least = 2**-9 * np.abs(values).max() / 448
            np.testing.assert_allclose(found[name], values, rtol=2**-4, atol=least, err_msg=name)
    m.save(tmp_path / "back")
    assert same_files(made, tmp_path / "back")


@pytest.mark.parametrize("model", MODELS)
def test_logits_are_those_of_the_numbers(tmp_path: Path, model: str, kind: str) -> None:
    made = make(tmp_path, model, VENDORS[kind])
    m, dense = wl.load(made.path), wl.load(made.dense)
    held = numbers_of(m)
    dense.model.load_weights([(name, mx.array(held[name])) for name in parameters(dense.model)])
    ids = mx.array(IDS)
    np.testing.assert_allclose(np.array(m.model(ids)), np.array(dense.model(ids)), rtol=2e-3, atol=2e-3)


def same_files(made: Made, back: Path) -> bool:
    names = ("model.safetensors", "config.json")
    return all((made.path / name).read_bytes() == (back / name).read_bytes() for name in names)
