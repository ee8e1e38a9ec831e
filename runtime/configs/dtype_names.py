"""Names of float types, as people write them."""

from __future__ import annotations

from weightloom.engine.errors import UsageError

_NAMES = {
    "F32": ("float32", "f32", "fp32", "float"),
    "F16": ("float16", "f16", "fp16", "half"),
    "BF16": ("bfloat16", "bf16"),
}
_DTYPES = {name: dtype for dtype, names in _NAMES.items() for name in names}


def float_dtype(name: str) -> str | None:
    """Give the name that safetensors has for a float type, `torch.` and the like before it or not; None for others."""
    return _DTYPES.get(name.strip().rpartition(".")[2].lower())


def safetensors_dtype(name: str) -> str:
    """Give the name that safetensors has for a float type; raises UsageError for another."""
    found = float_dtype(name)
    if found is None:
        raise UsageError(f"dtype {name!r}", expected="bfloat16, float16 or float32", field="dtype")
    return found
