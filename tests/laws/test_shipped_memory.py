"""Law 9 over every chain of ops that ships: what it takes is what the plan foresees, measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guards import ROOT
from tests.laws.test_law_9_memory import CONSTANT, WRITE_BUFFER


def test_each_chain_takes_what_is_foreseen(tmp_path: Path) -> None:
    """Loaded: the parameters and the scratch of a group. Disk to disk: one group and what is written at once."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not tell a process its peak")
    command = [sys.executable, "-m", "tests.laws.measured_shipped", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 25
    assert [each for each in found if each["loaded"] < each["nbytes"]] == []
    assert [each for each in found if each["loaded"] > each["foreseen"] + CONSTANT] == []
    assert [each for each in found if each["converted"] > each["group"] + WRITE_BUFFER + CONSTANT] == []
