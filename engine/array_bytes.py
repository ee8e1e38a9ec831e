"""Arrays of MLX and NumPy as a tensor's spec and bytes. Neither library is imported before it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from weightloom.engine.carrier import memory_of
from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import CheckpointError
from weightloom.engine.show import shown
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx
    import numpy as np

    Array: TypeAlias = mx.array | np.ndarray[Any, Any]

# The names of MLX, NumPy and ml_dtypes agree but for these.
_LABELS = {dtype.mlx: dtype.name for dtype in DTYPES.values() if dtype.mlx and dtype.name[:3] != "F8_"} | {
    "bool": "BOOL",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}


def spec_and_bytes(name: str, array: Array) -> tuple[TensorSpec, memoryview]:
    """Give an array's spec and its bytes, row-major and little-endian; contiguous ones are not copied.

    Raises CheckpointError, naming the tensor, for anything but an array of a dtype that safetensors has.
    """
    if type(array).__module__.startswith("mlx."):
        return _spec(name, str(array.dtype).rpartition(".")[2], array), memory_of(array)  # type: ignore[arg-type]
    import numpy as np

    if not isinstance(array, np.ndarray):
        raise _bad(name, f"a {type(array).__name__}", "an MLX or NumPy array")
    return _spec(name, array.dtype.name, array), _numpy_bytes(array)


def _spec(name: str, dtype: str, array: Array) -> TensorSpec:
    label = _LABELS.get(dtype)
    if label is None:
        raise _bad(name, f"an array of {dtype}", f"a dtype of safetensors: {', '.join(_LABELS)}")
    return TensorSpec(label, tuple(array.shape))


def _numpy_bytes(array: np.ndarray[Any, Any]) -> memoryview:
    import numpy as np

    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.asarray(array, order="C").reshape(-1).view(np.uint8).data


def _bad(name: str, seen: str, expected: str) -> CheckpointError:
    return CheckpointError(
        f"tensor {shown(name)} is {seen}", expected=expected, hint="convert it first", file="memory", tensor=name
    )
