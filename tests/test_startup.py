"""What an import brings along: the engine plans without MLX, and nothing brings torch or transformers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NEVER = {"torch", "transformers", "safetensors", "jsonschema", "hypothesis", "pytest"}
LATER = {"mlx", "numpy", "tqdm", "pluggy"}
PROBE = "; import json, sys; print(json.dumps(sorted(sys.modules)))"
EVERY_ENGINE_NAME = "import weightloom.engine as e; [getattr(e, name) for name in getattr(e, '__all__', ())]"


def modules_after(statement: str, folder: Path) -> set[str]:
    """Run a statement in a new interpreter outside the repository; give the names in `sys.modules`."""
    done = subprocess.run(
        [sys.executable, "-c", statement + PROBE], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import weightloom", NEVER | LATER | {"yaml", "regex", "weightloom.runtime", "weightloom.engine"}),
        ("import weightloom.engine", NEVER | LATER | {"yaml", "weightloom.rules", "weightloom.runtime"}),
        (EVERY_ENGINE_NAME, NEVER | {"mlx", "tqdm", "pluggy", "yaml"}),
        ("import weightloom.rules", NEVER | LATER | {"weightloom.plugins", "weightloom.runtime"}),
        ("import weightloom.runtime", NEVER | LATER),
    ],
)
def test_an_import_stays_small(statement: str, unwanted: set[str], tmp_path: Path) -> None:
    assert not modules_after(statement, tmp_path) & unwanted
