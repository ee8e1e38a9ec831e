"""Change the dtype that a config names, and not one byte more."""

from __future__ import annotations

import json
from collections.abc import Iterator

from weightloom.runtime.configs.config_text import repaired
from weightloom.runtime.configs.dtype_names import float_dtype
from weightloom.runtime.configs.stated_dtype import FIELDS

CONFIG_NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
_DECODER = json.JSONDecoder()


def with_dtype_field(raw: bytes, dtype: str) -> bytes:
    """Give a config (a JSON object that was parsed before) with `dtype` and `torch_dtype` naming another type.

    The fields of sub-configs change too, for their tensors are cast as well; other values and the form of the
    text stay, but for what was repaired to parse it. A config without such a field stays as it is.
    """
    text = repaired(raw.decode()).strict
    edited, last = [], 0
    for start, end in sorted(_dtype_spans(text)):
        edited += [text[last:start], json.dumps(CONFIG_NAMES[dtype])]
        last = end
    return "".join([*edited, text[last:]]).encode()


def _dtype_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the values of the dtype fields lie, and those of sub-configs, however deep."""
    waiting = [text.index("{")]
    for key, start, end in (member for at in waiting for member in _members(text, at)):
        if key in FIELDS and text[start] == '"' and float_dtype(json.loads(text[start:end])) is not None:
            yield start, end
        elif key.endswith("_config") and key != "quantization_config" and text[start] == "{":
            waiting.append(start)


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield (key, start, end of value) of an object whose `{` is at `at`."""
    at = _skip(text, at + 1)
    while text[at] == '"':
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield key, start, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at
