"""What is wrong with a quantized module is said by the name of its tensor; nothing is skipped, or taken for numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import weightloom as wl
from tests.plugins.formats.codes import Labelled, Tensors
from tests.plugins.formats.vendors import VENDORS, make, rewrite
from weightloom.engine.errors import ConfigError, PlanError, WeightloomError

LAYER = "model.layers.1.self_attn.v_proj"
EXPERT = "model.layers.2.mlp.experts.3.up_proj"
SCALES = {
    "fp8 blocks": "weight_scale_inv",
    "fp8 rows": "weight_scale",
    "fp8 whole": "weight_scale",
    "fp8 wide": "weight_scale",
    "gptq 3 bits": "scales",
    "modelopt fp8": "weight_scale",
    "modelopt nvfp4": "weight_scale",
    "mxfp4": "scale",
    "compressed nvfp4": "weight_scale",
    "compressed mxfp4": "weight_scale",
    "compressed floats": "weight_scale",
    "compressed int4": "weight_scale",
    "compressed int4 with zeros": "weight_scale",
    "compressed bytes": "weight_scale",
    "gptq": "scales",
    "awq": "scales",
    "bitnet": "weight_scale",
    "bitnet auto": "weight_scale",
}
WEIGHTS = {
    "gptq": "qweight",
    "gptq 3 bits": "qweight",
    "awq": "qweight",
    **dict.fromkeys(
        ["compressed nvfp4", "compressed mxfp4", "compressed int4", "compressed int4 with zeros"], "weight_packed"
    ),
}
NOT_A_NUMBER = {"F32": np.nan, "F16": np.nan, "F8_E4M3": 0x7F, "U8": 255}
Change = Callable[[Tensors, str, str], None]


def no_scale(tensors: Tensors, weight: str, scale: str) -> None:
    del tensors[scale]


def no_weight(tensors: Tensors, weight: str, scale: str) -> None:
    del tensors[weight]


def wrong_shape(tensors: Tensors, weight: str, scale: str) -> None:
    shape = (7, 3)
    tensors[scale] = Labelled(tensors[scale].label, np.zeros(shape, tensors[scale].array.dtype))


def wrong_dtype(tensors: Tensors, weight: str, scale: str) -> None:
    tensors[scale] = Labelled("I64", np.zeros(tensors[scale].array.shape, np.int64))


def no_groups(tensors: Tensors, weight: str, scale: str) -> None:
    array = tensors[scale].array
    tensors[scale] = Labelled(tensors[scale].label, np.zeros((0, *array.shape[1:]), array.dtype))


def no_number(tensors: Tensors, weight: str, scale: str) -> None:
    array = tensors[scale].array.copy()
    array.reshape(-1)[-1] = NOT_A_NUMBER[tensors[scale].label]
    tensors[scale] = Labelled(tensors[scale].label, array)


CHANGES: tuple[Change, ...] = (no_scale, no_weight, wrong_shape, wrong_dtype, no_groups, no_number)


@pytest.mark.parametrize("model", ["llama", pytest.param("qwen3_moe", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", SCALES)
def test_a_malformed_module_is_named(tmp_path: Path, model: str, kind: str, change: Change) -> None:
    made = make(tmp_path, model, VENDORS[kind])
    stem = EXPERT if model == "qwen3_moe" else LAYER
    tensors = dict(made.tensors)
    change(tensors, f"{stem}.{WEIGHTS.get(kind, 'weight')}", f"{stem}.{SCALES[kind]}")
    rewrite(made, tensors)
    with pytest.raises(WeightloomError) as caught:
        wl.load(made.path)
    said = str(caught.value)
    assert stem in said or (change is no_weight and stem.rpartition(".")[0].rpartition(".experts")[0] in said), said


def test_codes_of_a_module_that_is_listed_as_not_quantized(tmp_path: Path) -> None:
    made = make(tmp_path, "llama", VENDORS["fp8 blocks"])
    section = {**made.config["quantization_config"], "modules_to_not_convert": [LAYER]}
    rewrite(made, made.tensors, {**made.config, "quantization_config": section})
    with pytest.raises(ConfigError, match=rf"{LAYER}.weight is stored as codes, and modules_to_not_convert lists"):
        wl.load(made.path)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"quant_method": "hqq"}, "no installed quantization format serves quant_method 'hqq'"),
        ({"quant_method": "fp9"}, "did you mean"),
        ({"fmt": "e5m2"}, "fmt is 'e5m2', and the codes of .* are e4m3"),
        ({"weight_block_size": 128}, "weight_block_size is 128"),
        ({"weight_block_size": [128, 0]}, r"weight_block_size is \[128, 0\]"),
        ({"weight_block_size": [16, 16]}, "scales of F32"),
        ({"modules_to_not_convert": "lm_head"}, "modules_to_not_convert is 'lm_head'"),
        ({"modules_to_not_convert": ["re:("]}, "cannot be used as a pattern"),
    ],
)
def test_what_the_config_cannot_say(tmp_path: Path, change: dict[str, object], seen: str) -> None:
    made = make(tmp_path, "llama", VENDORS["fp8 blocks"])
    section = {**made.config["quantization_config"], **change}
    rewrite(made, made.tensors, {**made.config, "quantization_config": section})
    with pytest.raises(WeightloomError, match=seen):
        wl.load(made.path)


def test_a_method_without_such_tensors(tmp_path: Path) -> None:
    made = make(tmp_path, "llama", VENDORS["fp8 blocks"])
    section = {"quant_method": "mxfp4"}
    rewrite(made, made.tensors, {**made.config, "quantization_config": section})
    with pytest.raises(ConfigError, match="no tensor is stored as mxfp4 stores them"):
        wl.load(made.path)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"linear_class": "linear"}, "linear_class is 'linear'"),
        ({"quantization_mode": "online"}, "quantization_mode is 'online'"),
        ({"use_rms_norm": True}, "use_rms_norm is True"),
        ({"modules_to_not_convert": [LAYER]}, f"{LAYER}.weight is stored as codes"),
    ],
)
def test_what_bitnet_layers_may_do_beside(tmp_path: Path, change: dict[str, object], seen: str) -> None:
    made = make(tmp_path, "llama", VENDORS["bitnet"])
    section = {**made.config["quantization_config"], **change}
    rewrite(made, made.tensors, {**made.config, "quantization_config": section})
    with pytest.raises(ConfigError, match=seen):
        wl.load(made.path)


def test_a_code_that_is_no_ternary_number(tmp_path: Path) -> None:
    made = make(tmp_path, "llama", VENDORS["bitnet"])
    codes = made.tensors[f"{LAYER}.weight"].array.copy()
    codes[0, 0] = 0b11
    rewrite(made, {**made.tensors, f"{LAYER}.weight": Labelled("U8", codes)})
    with pytest.raises(PlanError, match=rf"{LAYER}\.weight.*codes are not all ternary"):
        wl.load(made.path)
