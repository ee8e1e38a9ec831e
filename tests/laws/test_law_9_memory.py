"""Law 9: what a load takes at its peak is what the plan foresees; disk to disk takes one group and one buffer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.guards import ROOT
from tests.laws.measured import write

# What no plan can foresee: threads' stacks, the allocator's rounding, Python's own objects.
CONSTANT = 6 << 20
WRITE_BUFFER = (8 << 20) + (1 << 20)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not tell a process its peak")
    with TemporaryDirectory() as place:
        write(Path(place))
        yield Path(place)


def measured(kind: str, threads: int, folder: Path) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.laws.measured", kind, str(threads), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.case("C77")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["load", "load turned"])
def test_a_load_takes_what_the_plan_foresees(folder: Path, kind: str, threads: int) -> None:
    found = measured(kind, threads, folder)
    assert found["nbytes"] == found["device"] == 64 << 20
    assert found["peak_bytes"] * threads >= found["foreseen"] >= found["peak_bytes"]
    assert found["foreseen"] == found["nbytes"] + found["scratch"]
    assert found["nbytes"] <= found["taken"] + CONSTANT
    assert found["taken"] <= found["foreseen"] + CONSTANT


@pytest.mark.case("C77")
@pytest.mark.parametrize("kind", ["convert", "convert turned"])
def test_disk_to_disk_takes_one_group_and_one_buffer(folder: Path, kind: str) -> None:
    found = measured(kind, 1, folder)
    assert found["taken"] <= found["group"] + WRITE_BUFFER + CONSTANT
    assert found["taken"] < found["nbytes"]
