from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightloom.runtime.configs.dtype_field import with_dtype_field


@pytest.mark.parametrize("field", ["dtype", "torch_dtype"])
def test_only_the_value_changes(field: str) -> None:
    raw = f'\n{{ "a" : [1, {{"dtype": "float32"}}],\t"{field}":"float32" , "b": "dtype" }}\n'
    wanted = raw.replace(f'"{field}":"float32"', f'"{field}":"bfloat16"')
    assert with_dtype_field(raw.encode(), "BF16").decode() == wanted


def test_sub_configs_change_and_quantization_does_not() -> None:
    config = {
        "text_config": {"dtype": "float32", "rope": {"dtype": "float32"}},
        "vision_config": {"torch_dtype": "torch.float16"},
        "quantization_config": {"dtype": "float32"},
        "audio_config": None,
    }
    found = json.loads(with_dtype_field(json.dumps(config).encode(), "BF16"))
    assert found["text_config"] == {"dtype": "bfloat16", "rope": {"dtype": "float32"}}
    assert found["vision_config"] == {"torch_dtype": "bfloat16"}
    assert (found["quantization_config"], found["audio_config"]) == ({"dtype": "float32"}, None)


@pytest.mark.parametrize("value", [None, "int8", "auto", 5, ["float32"], {"default": "float32"}])
def test_a_value_that_is_no_float_type_stays(value: Any) -> None:
    raw = json.dumps({"dtype": value}).encode()
    assert with_dtype_field(raw, "F16") == raw


@pytest.mark.parametrize("raw", [b"{}", b" { } ", b'{"a": 1}', b'{"text_config": {}}'])
def test_a_config_without_the_field_stays(raw: bytes) -> None:
    assert with_dtype_field(raw, "F16") == raw


def test_what_is_no_strict_json_is_repaired() -> None:
    raw = b'\xef\xbb\xbf{"a": [1, 2,], "dtype": "float32",}'
    assert with_dtype_field(raw, "F16") == b'{"a": [1, 2], "dtype": "float16"}'
    assert with_dtype_field(b'{"x": [NaN, Infinity]}', "F16") == b'{"x": [null, 1e999]}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
keys = st.text(max_size=8) | st.sampled_from(["dtype", "torch_dtype", "text_config"])
configs = st.dictionaries(keys, json_values | st.sampled_from(["float32", "bfloat16"]), max_size=6)


@given(configs, st.sampled_from([None, 1, 4]), st.booleans())
def test_it_is_what_changing_the_parsed_values_gives(config: dict[str, Any], indent: int | None, ascii: bool) -> None:
    raw = json.dumps(config, indent=indent, ensure_ascii=ascii).encode("utf-8", "surrogatepass")
    if not ascii and any(0xD800 <= ord(c) < 0xE000 for c in json.dumps(config, ensure_ascii=False)):
        return
    assert json.loads(with_dtype_field(raw, "F16")) == changed(config)


def changed(config: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in config.items():
        if key in ("dtype", "torch_dtype") and value in ("float32", "bfloat16", "float16"):
            found[key] = "float16"
        elif key.endswith("_config") and key != "quantization_config" and isinstance(value, dict):
            found[key] = changed(value)
        else:
            found[key] = value
    return found
