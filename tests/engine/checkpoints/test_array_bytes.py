from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.engine.reads import data_of
from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import CheckpointError
from weightloom.engine.spec import TensorSpec

ARRAYS = {
    "bf16.t": mx.arange(12).reshape(3, 4).astype(mx.bfloat16).T,
    "bf16.0d": mx.array(1.5, mx.bfloat16),
    "mx.empty": mx.zeros((0, 2)),
    "mx.bool": mx.array([True, False]),
    "mx.complex": mx.array([1 + 2j]),
    "np.t": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "np.0d": np.array(2.5),
    "np.empty": np.zeros((3, 0), np.int16),
    "np.big": np.arange(3, dtype=">i4"),
    "np.steps": np.arange(20, dtype=np.uint8)[::-3],
    "np.broadcast": np.broadcast_to(np.float16(3), (2, 2)),
    "np.bool": np.array([True, False]),
}


def expected_bytes(array: mx.array | np.ndarray) -> bytes:  # type: ignore[type-arg]
    if isinstance(array, mx.array):
        if array.dtype == mx.bfloat16:
            return np.array(array.astype(mx.float32)).astype("<f4").view("<u4").__rshift__(16).astype("<u2").tobytes()
        array = np.array(array)
    return array.astype(array.dtype.newbyteorder("<")).tobytes()


def test_arrays_of_both_kinds() -> None:
    checkpoint = Checkpoint.from_arrays(ARRAYS, {"k": "v"})
    dtypes = ["BF16", "BF16", "F32", "BOOL", "C64", "F32", "F64", "I16", "I32", "U8", "F16", "BOOL"]
    assert [spec.dtype for spec in checkpoint.tensors.values()] == dtypes
    for name, array in ARRAYS.items():
        assert checkpoint.tensors[name] == TensorSpec(checkpoint.tensors[name].dtype, tuple(array.shape))
        assert data_of(checkpoint, name) == expected_bytes(array), name
    assert checkpoint.metadata == {"k": "v"}
    assert (checkpoint.files, checkpoint.shards[0].path) == ((), None)
    checkpoint.check_unchanged()


def test_arrays_read_as_the_file_that_they_would_be(tmp_path: Path) -> None:
    source = Checkpoint.from_arrays(ARRAYS).shards[0].source
    buffer = bytearray(source.size)
    source.read_into(0, memoryview(buffer))
    (tmp_path / "x.safetensors").write_bytes(buffer)
    again = Checkpoint.open(tmp_path / "x.safetensors")
    assert {n: data_of(again, n) for n in ARRAYS} == {n: expected_bytes(a) for n, a in ARRAYS.items()}


@pytest.mark.parametrize(
    "array", [[1.0], 1.0, np.float32(1), np.array(["a"]), np.array([None]), np.zeros(2, np.complex128)]
)
def test_what_is_no_array_of_a_known_dtype(array: object) -> None:
    with pytest.raises(CheckpointError) as caught:
        Checkpoint.from_arrays({"model.a": array})  # type: ignore[dict-item]
    assert caught.value.tensor == "model.a"


def test_specs_have_no_bytes() -> None:
    specs = {"b": TensorSpec("F4", (2, 8)), "a": TensorSpec("BF16", (3,))}
    checkpoint = Checkpoint.from_specs(specs)
    assert list(checkpoint.tensors.items()) == list(specs.items())
    assert checkpoint.nbytes == 14
    with pytest.raises(CheckpointError, match="no data"):
        data_of(checkpoint, "a")
    with pytest.raises(CheckpointError, match="unknown dtype None"):
        Checkpoint.from_specs({"a": TensorSpec(None, (2,))})
    assert dict(Checkpoint.from_specs({}).tensors) == {}
