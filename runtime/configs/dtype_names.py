"""Names of float types, as people write them."""

from __future__ import annotations

from weightloom.engine.errors import UsageError

_NAMES = {
    "F32": ("float32", "f32", "fp32"),
    "F16": ("float16", "f16", "fp16", "half"),
    "BF16": ("bfloat16", "bf16"),
}


def safetensors_dtype(name: str) -> str:
    """Give the name that safetensors has for a float type; raises UsageError for another."""
    wanted = name.rpartition(".")[2].lower()
    for dtype, names in _NAMES.items():
        if wanted == dtype.lower() or wanted in names:
            return dtype
    raise UsageError(f"dtype {name!r}", expected="bfloat16, float16 or float32", field="dtype")
