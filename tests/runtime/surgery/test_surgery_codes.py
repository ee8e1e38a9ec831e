"""Surgery on published FP8 codes, which the mlx layout has as floats: it acts on those."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.runtime.models import config_of, write_model
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.surgery.surgery_file import SurgeryFile, read_surgery

NAME = "model.layers.0.self_attn.o_proj.weight"
QUANTIZATION = {"quant_method": "fp8", "weight_block_size": [16, 16]}


def with_codes(folder: Path) -> Path:
    """Write a llama in which one weight is E4M3 codes with a scale for each block of 16 by 16."""
    write_model(folder, "llama")
    arrays = {name: np.array(array) for name, array in mx.load(str(folder / "model.safetensors")).items()}
    codes = np.array(mx.to_fp8(mx.array(arrays[NAME])))
    blocks = (-(-codes.shape[0] // 16), -(-codes.shape[1] // 16))
    arrays |= {NAME: codes, f"{NAME}_scale_inv": np.full(blocks, 0.5, np.float32)}
    header: dict[str, object] = {}
    data = b""
    for name, array in arrays.items():
        place = [len(data), len(data) + array.nbytes]
        dtype = "F8_E4M3" if name == NAME else "F32"
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": place}
        data += array.tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "config.json").write_text(json.dumps(config_of("llama", quantization_config=QUANTIZATION)))
    return folder


def written(source: Path, target: Path, surgery: SurgeryFile | None) -> mx.array:
    convert(source, Order(target, "mlx", surgery=surgery), Wish())
    return mx.load(str(target / "model.safetensors"))[NAME]


@pytest.mark.parametrize("extra", ["", "  side: file\n"])
def test_codes_are_scaled_on_the_way_to_floats(tmp_path: Path, extra: str) -> None:
    source, file = with_codes(tmp_path / "m"), tmp_path / "surgery.yaml"
    file.write_text(f"version: 1\noperations:\n- op: scale\n  pattern: '{NAME}'\n  factor: 2.0\n{extra}")
    was = written(source, tmp_path / "plain", None)
    assert was.dtype == mx.bfloat16
    assert mx.array_equal(written(source, tmp_path / "scaled", read_surgery(file)), was * 2).item()
