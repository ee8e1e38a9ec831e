"""What MLX reads through, and the threads that it leaves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from weightloom.engine.reading.virtual_file import load_arrays
from weightloom.engine.spec import TensorSpec

_SPEC = TensorSpec("U8", (4,))


def _fill(number: int, out: memoryview) -> None:
    out[:] = bytes([number]) * len(out)


def _load() -> list[object]:
    return [array.tolist() for array in load_arrays([_SPEC, _SPEC], _fill)]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted where Linux lists them")
def test_each_load_leaves_no_more_threads_behind() -> None:
    assert _load() == [[0] * 4, [1] * 4]
    tasks = Path("/proc/self/task")
    before = len(list(tasks.iterdir()))
    for _ in range(20):
        _load()
    assert len(list(tasks.iterdir())) <= before
