"""Run as a script: take some MiB through every chain of ops that ships, and print what memory each took, as JSON.

`python -m tests.laws.measured_shipped FOLDER`; the peaks are those of the resident set.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.laws.measured import peak

if TYPE_CHECKING:
    from weightloom.engine import Plan, WeightConverter

SIZE = 16 << 20


def prepared(rule: WeightConverter, file: Path) -> Callable[[], Plan]:
    """Write a file of some size for one rule; gives how it is planned."""
    from tests.laws.disk import shard_bytes
    from tests.laws.shipped import fitting
    from tests.laws.worlds import tensor
    from weightloom.engine import Checkpoint, RuleSet

    small = sum(spec.nbytes for spec in fitting(RuleSet([rule])).tensors.values())
    found = fitting(RuleSet([rule]), max(1, SIZE // small))
    tensors = {name: tensor(spec.dtype or "", spec.shape, 1) for name, spec in found.tensors.items()}
    file.write_bytes(shard_bytes(list(tensors), list(tensors), tensors, None, {}, 0))
    return lambda: found.plan(Checkpoint.open(file))


def load(plan: Plan, folder: Path) -> None:
    import mlx.core as mx

    held = plan.load(threads=1)
    mx.eval(*held.values())


def convert(plan: Plan, folder: Path) -> None:
    from weightloom.engine.saving.save import convert

    convert(plan, folder / "target", overwrite=True)


def taken(plan_of: Callable[[], Plan], way: Callable[[Plan, Path], None], folder: Path) -> int:
    """Measure in a process of its own, in which MLX has computed nothing yet; the imports are shared."""
    answer = folder / "answer"
    child = os.fork()
    if child == 0:
        answer.write_text(str(_taken(plan_of(), way, folder)))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"the child ended with {status}")
    return int(answer.read_text())


def _taken(plan: Plan, way: Callable[[Plan, Path], None], folder: Path) -> int:
    import mlx.core as mx
    import numpy as np

    mx.eval(mx.zeros(8) + np.ones(8, np.float32))
    plan.check()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    way(plan, folder)
    return peak() - before


def measured(rule: WeightConverter, folder: Path) -> dict[str, str | int]:
    from weightloom.engine.reading.memory import memory

    plan_of = prepared(rule, folder / "model.safetensors")
    plan = plan_of()
    foreseen = memory(plan)
    group = max(sum(spec.nbytes for spec in each.program.out_specs) for each in plan.groups)
    return {
        "chain": rule.title(),
        "nbytes": plan.nbytes,
        "foreseen": foreseen.total,
        "group": group + foreseen.device - plan.nbytes,
        "loaded": taken(plan_of, load, folder),
        "converted": taken(plan_of, convert, folder),
    }


def main(folder: Path) -> None:
    from tests.laws.shipped import chains

    print(json.dumps([measured(rule, folder) for rule in chains()]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
