"""Change the dtype that a config names, and not one byte more."""

from __future__ import annotations

import json
from collections.abc import Iterator

from weightloom.runtime.configs.config_text import repaired

CONFIG_NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
_FIELDS = ("dtype", "torch_dtype")
_KNOWN = {*CONFIG_NAMES.values(), *(f"torch.{name}" for name in CONFIG_NAMES.values())}
_DECODER = json.JSONDecoder()


def with_dtype_field(raw: bytes, dtype: str) -> bytes:
    """Give a config (a JSON object that was parsed before) with `dtype` and `torch_dtype` naming another type.

    The fields of sub-configs change too, for their tensors are cast as well; other values and the form of the
    text stay, but for what was repaired to parse it. A config without such a field stays as it is.
    """
    text = repaired(raw.decode()).strict
    edited, last = [], 0
    for start, end in _dtype_spans(text, text.index("{")):
        edited += [text[last:start], json.dumps(CONFIG_NAMES[dtype])]
        last = end
    return "".join([*edited, text[last:]]).encode()


def _dtype_spans(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield where the values of the dtype fields of an object lie, and those of its sub-configs."""
    for key, start, end in _members(text, at):
        if key in _FIELDS and text[start] == '"' and json.loads(text[start:end]) in _KNOWN:
            yield start, end
        elif key.endswith("_config") and key != "quantization_config" and text[start] == "{":
            yield from _dtype_spans(text, start)


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
