"""A process that has loaded parameters, or failed to, ends with its own exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from weightloom.engine import TensorSpec, PlanError
from weightloom.engine.reading.virtual_file import load_arrays

def fill(number, out):
    if number == {bad}:
        raise PlanError("no")
    out[:] = bytes(len(out))

kept = load_arrays([TensorSpec("U8", (4 << 20,))] * 8, fill)
"""


@pytest.mark.parametrize(("bad", "code"), [(-1, 0), (5, 1)])
def test_no_thread_of_mlx_aborts_the_end(bad: int, code: int) -> None:
    """Without waiting for MLX's threads, most runs end with SIGABRT."""
    command = [sys.executable, "-c", SCRIPT.format(bad=bad)]
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, "terminate" in done.stderr) == (code, False)
