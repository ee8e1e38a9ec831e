"""Building and installing, away from the repository and from this environment."""

import os
import subprocess
import sys
import venv
from pathlib import Path


def run(*command: str | Path, folder: Path) -> str:
    """Run a command away from the repository and from this environment; give what it printed."""
    done = ended(*command, folder=folder)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def ended(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the same way, whatever its exit code."""
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    parts = [str(part) for part in command]
    return subprocess.run(parts, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def make_environment(folder: Path) -> Path:
    """Make a virtual environment without anything of this one; give its interpreter."""
    venv.create(folder, with_pip=True, symlinks=True)
    return folder / "bin" / "python"


def extra() -> str:
    """Give the extra that brings MLX's back end."""
    return "[cpu]" if sys.platform == "linux" else ""
