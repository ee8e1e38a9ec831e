"""Print how long weightloom takes to start, as ratios to an interpreter that does nothing.

`inspect` asks the architecture's plugin what a checkpoint is loaded as, and plugins bring modules of MLX; with
`--open-target` it goes by the rules alone. Each round runs every command once, so that a busy moment hits all alike; a
row is a median over rounds.
"""

import json
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROUNDS = 7
BASELINE = "python -c pass"
ASKING = "weightloom inspect"
TARGET, TARGET_ASKING = 10.0, 20.0


def write_checkpoint(folder: Path) -> Path:
    """Write one F32 tensor of shape (2, 3) as safetensors, by hand: this script needs no package but ours."""
    data = struct.pack("<6f", *range(6))
    entry = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, len(data)]}
    header = json.dumps({"LayerNorm.weight": entry}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}), encoding="utf-8")
    return folder


def commands(checkpoint: Path) -> dict[str, list[str]]:
    """Give each row's command line; the first one is what the others are divided by."""
    python = sys.executable
    cli = [python, "-m", "weightloom.runtime"]
    return {
        BASELINE: [python, "-c", "pass"],
        "import weightloom.engine": [python, "-c", "import weightloom.engine"],
        "weightloom --help": [*cli, "--help"],
        "weightloom inspect --open-target": [*cli, "inspect", str(checkpoint), "--open-target"],
        ASKING: [*cli, "inspect", str(checkpoint)],
    }


def seconds(command: Sequence[str], folder: Path) -> float | None:
    """Run a command away from the sources; give its wall time, or None when it fails."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return time.perf_counter() - start if done.returncode == 0 else None


def medians(table: dict[str, list[str]], folder: Path) -> dict[str, float | None]:
    """Give each command's median time over the rounds in seconds, or None for one that failed."""
    for command in table.values():
        seconds(command, folder)  # the first run compiles to bytecode
    rounds = [{name: seconds(command, folder) for name, command in table.items()} for _ in range(ROUNDS)]
    times = {name: [taken[name] for taken in rounds] for name in table}
    good = {name: [t for t in row if t is not None] for name, row in times.items()}
    return {name: statistics.median(row) if len(row) == ROUNDS else None for name, row in good.items()}


def report(results: dict[str, float | None]) -> str:
    """Write the table: command, milliseconds, ratio to the baseline, verdict."""
    base = results[BASELINE]
    lines = [f"{'start-up':<34}{'ms':>8}{'ratio':>8}  target"]
    for name, taken in results.items():
        target = TARGET_ASKING if name == ASKING else TARGET
        if taken is None or base is None:
            lines.append(f"{name:<34}{'-':>8}{'-':>8}  failed")
        else:
            verdict = "ok" if taken / base <= target else "over"
            lines.append(f"{name:<34}{taken * 1e3:>8.0f}{taken / base:>8.1f}  <= {target:g} {verdict}")
    return "\n".join(lines)


def main() -> int:
    """Measure and print; 1 when a command failed, whatever the ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = medians(commands(write_checkpoint(folder)), folder)
    print(report(results))
    return int(None in results.values())


if __name__ == "__main__":
    raise SystemExit(main())
