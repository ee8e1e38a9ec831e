"""Run as a script: do one thing to a checkpoint of stacked experts and print the memory that it took, as JSON.

`python -m tests.laws.measured KIND THREADS FOLDER`; the peak is that of the resident set since the imports.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

LAYERS, EXPERTS, ROWS, COLUMNS = 2, 16, 512, 2048  # of U8: 1 MiB a tensor, 64 MiB in all


def write(folder: Path) -> None:
    import numpy as np

    from tests.laws.disk import shard_bytes
    from tests.laws.worlds import Tensor

    one = np.arange(ROWS * COLUMNS, dtype=np.uint32).astype(np.uint8).tobytes()
    tensors = {
        f"layers.{layer}.experts.{n}.{part}.w": Tensor("U8", (ROWS, COLUMNS), one)
        for n in range(EXPERTS)
        for layer in range(LAYERS)
        for part in ("up", "gate")
    }
    names = list(tensors)
    (folder / "model.safetensors").write_bytes(shard_bytes(names, names, tensors, None, {}, 0))


def peak() -> int:
    """The largest resident set so far, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) * 1024


def main(kind: str, threads: int, folder: Path) -> None:
    import mlx.core as mx
    import numpy as np

    from weightloom.engine import (
        Checkpoint,
        Concatenate,
        MergeModulelist,
        RuleSet,
        Transpose,
        WeightConverter,
        build_plan,
    )
    from weightloom.engine.reading.memory import memory
    from weightloom.engine.saving.save import convert

    stack = [MergeModulelist(0), Concatenate(1), *([Transpose(1, 2)] if "turned" in kind else [])]
    sources = [r"experts\.*.gate\.w", r"experts\.*.up\.w"]
    rules = RuleSet([WeightConverter(sources, r"experts\.gate_up", stack)])
    mx.eval(mx.zeros(8) + np.ones(8, np.float32))
    with Checkpoint.from_arrays({"experts.0.gate.w": np.ones((2, 2)), "experts.0.up.w": np.ones((2, 2))}) as small:
        build_plan(small, rules).load(threads=threads)
    with Checkpoint.open(folder / "model.safetensors") as checkpoint:
        plan = build_plan(checkpoint, rules)
        plan.check()
        foreseen = memory(plan, threads)
        Path("/proc/self/clear_refs").write_text("5")
        before = peak()
        if "convert" in kind:
            convert(plan, folder / "target", overwrite=True)
        else:
            held = plan.load(threads=threads)
            mx.eval(*held.values())
        taken = peak() - before
    group = max(sum(spec.nbytes for spec in g.program.out_specs) for g in plan.groups)
    print(
        json.dumps(
            {
                "taken": taken,
                "foreseen": foreseen.total,
                "scratch": foreseen.host,
                "device": foreseen.device,
                "nbytes": plan.nbytes,
                "peak_bytes": plan.peak_bytes,
                "group": group,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
