"""Run as a script: pack the matrices of a checkpoint on the way in, or to disk, and print the memory taken, as JSON.

`python -m tests.engine.quantizing.measured KIND MODE FOLDER`; the peak is that of the resident set since the imports.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

COUNT, ROWS, COLUMNS = 12, 1024, 2048  # of F32: 8 MiB each, 96 MiB in all


def write(folder: Path) -> None:
    import numpy as np

    from tests.cases.fixtures import write as write_file

    one = np.sin(np.arange(ROWS * COLUMNS, dtype=np.float32)).reshape(ROWS, COLUMNS)
    write_file(folder / "model.safetensors", {f"layers.{number}.w.weight": one for number in range(COUNT)})


def peak() -> int:
    """The largest resident set so far, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) * 1024


def main(kind: str, mode: str, folder: Path) -> None:
    import mlx.core as mx
    import numpy as np

    from weightloom.engine import Checkpoint, build_plan
    from weightloom.engine.quantizing.plans import packed_plan
    from weightloom.engine.quantizing.quantization import BLOCK_MODES, Quantization
    from weightloom.engine.saving.save import convert

    how = Quantization(*BLOCK_MODES.get(mode, (4, 64)), mode)
    with Checkpoint.from_arrays({"w.weight": np.ones((64, 64), np.float32)}) as small:
        mx.eval(*packed_plan(build_plan(small, ()), {"w.weight": how}).load(threads=1).values())
    with Checkpoint.open(folder / "model.safetensors") as checkpoint:
        plan = packed_plan(build_plan(checkpoint, ()), dict.fromkeys(checkpoint.tensors, how))
        Path("/proc/self/clear_refs").write_text("5")
        before = peak()
        if kind == "convert":
            convert(plan, folder / f"target-{mode}", overwrite=True)
        else:
            held = plan.load(threads=1)
            mx.eval(*held.values())
        taken = peak() - before
    print(json.dumps({"taken": taken, "foreseen": plan.peak_bytes, "nbytes": plan.nbytes}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
