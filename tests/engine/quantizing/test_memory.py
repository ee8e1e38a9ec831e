"""Law 9 for what is packed on the way: the plan foresees the peak, and to disk one group is all that is held."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.engine.quantizing.measured import write
from tests.guards import ROOT

# Threads' stacks, the allocator's rounding, Python's own objects.
CONSTANT = 6 << 20


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not tell a process its peak")
    with TemporaryDirectory() as place:
        write(Path(place))
        yield Path(place)


def measured(kind: str, mode: str, folder: Path) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.engine.quantizing.measured", kind, mode, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("mode", ["affine", "mxfp8", pytest.param("mxfp4", marks=pytest.mark.thorough)])
def test_packing_takes_what_the_plan_foresees(folder: Path, mode: str) -> None:
    loaded, converted = (measured(kind, mode, folder) for kind in ("load", "convert"))
    assert loaded["taken"] <= loaded["foreseen"] + CONSTANT
    assert converted["taken"] <= converted["foreseen"] - converted["nbytes"] + CONSTANT
    assert max(loaded["taken"], converted["taken"]) < (folder / "model.safetensors").stat().st_size / 2
