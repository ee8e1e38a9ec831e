"""Sections and tensors that are changed at random: only named errors come out, and codes never become plain weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weightloom as wl
from tests.plugins.formats.codes import Array, Labelled, Tensors, write
from tests.plugins.formats.vendors import VENDORS, Made, make
from tests.strategies import share
from weightloom.engine.errors import WeightloomError
from weightloom.plugins.modules.binding import parameters

SMALL = {
    "num_hidden_layers": 1,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 16,
}
STEM = "model.layers.0.mlp.up_proj"
# Dtypes by how many bits a number has: a label may be taken for another of as many.
ALIKE = (
    ("U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "BOOL"),
    ("F16", "BF16", "I16"),
    ("I32", "U32", "F32"),
    ("I64", "F64", "U64"),
)
# What is said of what is multiplied, and which input is of which group where they follow one another, can be spared.
SPARED = ("input_scale",)
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 200),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "float", "e5m2", "int", "gemv", "gptq_v2", "re:(", "*", "NVFP4", "FP8", *VENDORS]),
    st.lists(st.one_of(st.integers(-1, 64), st.text(max_size=3), st.none()), max_size=3),
    st.dictionaries(st.sampled_from(["bits", "weights", "a"]), st.integers(0, 9), max_size=2),
)


@lru_cache
def checkpoint(kind: str) -> Made:
    return make(Path(mkdtemp()), "llama", VENDORS[kind], **SMALL)


def loaded(config: Mapping[str, Any], tensors: Tensors) -> dict[str, mx.array] | None:
    """The parameters; None where the load is refused by an error that is the house's own."""
    with TemporaryDirectory() as name:
        write(Path(name) / "model.safetensors", tensors)
        (Path(name) / "config.json").write_text(json.dumps(config))
        try:
            return parameters(wl.load(name).model)
        except WeightloomError as error:
            assert error.seen and str(error)
            return None


def assert_no_codes_as_numbers(params: Mapping[str, mx.array], tensors: Tensors) -> None:
    """A weight of floats has what the codes mean, or is no coded one: never the codes themselves."""
    for name, array in params.items():
        scaled = name.removesuffix("weight") + "scales" in params
        if name.endswith("_proj.weight") and not scaled:
            assert mx.issubdtype(array.dtype, mx.floating), name
            found = np.array(array.astype(mx.float32))
            for part in tensors.values():
                assert part.array.shape != found.shape or not same(part, found), name


def same(part: Labelled, found: Array) -> bool:
    return part.label not in ("F32", "F16", "BF16") and bool(np.array_equal(part.array.astype(np.float32), found))


def test_what_is_not_changed_is_loaded() -> None:
    for kind in VENDORS:
        made = checkpoint(kind)
        params = loaded(made.config, made.tensors)
        assert params is not None, kind
        assert_no_codes_as_numbers(params, made.tensors)


@pytest.mark.parametrize("kind", VENDORS)
@pytest.mark.parametrize("renamed", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_no_part_of_a_module_can_be_spared(kind: str, renamed: bool) -> None:
    """Nor be under a name that nobody knows."""
    made = checkpoint(kind)
    for name in [name for name in made.tensors if name.startswith(STEM) and not name.endswith(SPARED)]:
        tensors = {key: part for key, part in made.tensors.items() if key != name}
        if renamed:
            tensors[f"{name}_of_old"] = made.tensors[name]
        assert loaded(made.config, tensors) is None, name


@share(0.3)
@given(data=st.data(), kind=st.sampled_from(sorted(VENDORS)))
def test_another_dtype_or_shape_is_refused_or_understood(data: st.DataObject, kind: str) -> None:
    made = checkpoint(kind)
    name = data.draw(st.sampled_from([name for name in made.tensors if name.startswith(STEM)]))
    part = made.tensors[name]
    family = next(each for each in ALIKE if part.label in each)
    label = data.draw(st.sampled_from(family))
    array = data.draw(st.sampled_from(shapes(part.array)))
    tensors = {**made.tensors, name: Labelled(label, array)}
    params = loaded(made.config, tensors)
    if params is not None:
        assert_no_codes_as_numbers(params, tensors)


def shapes(array: Array) -> list[Array]:
    """The same numbers in other shapes, fewer, none, and twice as many."""
    flat = array.reshape(-1)
    return [
        array,
        flat,
        array[None],
        array.T,
        flat[:0],
        array[..., :0] if array.ndim else array,
        array[:1] if array.ndim else array,
        np.concatenate([array, array]) if array.ndim else array[None],
    ]


@share(0.3)
@given(data=st.data(), kind=st.sampled_from(sorted(VENDORS)))
def test_another_section_is_refused_or_understood(data: st.DataObject, kind: str) -> None:
    made = checkpoint(kind)
    section = json.loads(json.dumps(made.config.get("quantization_config", {})))
    place = section
    while True:
        key = data.draw(st.sampled_from(sorted({*place, "quant_method", "format", "weight_block_size", "ignore"})))
        inner = place.get(key)
        if not isinstance(inner, dict) or not inner or data.draw(st.booleans()):
            break
        place = inner
    if data.draw(st.booleans()):
        place.pop(key, None)
    else:
        place[key] = data.draw(JUNK)
    whole = data.draw(st.sampled_from([section, section, section, None, [], "x", 3]))
    params = loaded({**made.config, "quantization_config": whole}, made.tensors)
    if params is not None:
        assert_no_codes_as_numbers(params, made.tensors)
