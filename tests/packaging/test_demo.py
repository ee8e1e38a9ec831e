"""The demo: fetched, run to its end, and with the answers that the real models give."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guards import ROOT


@pytest.mark.packaging
def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "demo.sh"
    script.parent.mkdir()
    shutil.copy(ROOT / "scripts" / "demo.sh", script)
    installed = {"PYTHON": sys.executable, "WEIGHTLOOM": str(Path(sys.executable).with_name("weightloom"))}
    run = subprocess.run(["bash", script], env=os.environ | installed, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("The capital of France is Paris.") >= 2
    assert "of the GGUF and of what was written from it: equal" in run.stdout
    assert run.stdout.endswith("done: the results are in demo-out/\n")
    assert (tmp_path / "demo-out" / "SmolLM2-hf" / "config.json").is_file()
