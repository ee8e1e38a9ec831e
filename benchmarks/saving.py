"""Print how long saving takes and what memory it takes beside the model, over writing the same bytes.

A Qwen3-MoE of 1.6 GB with three tensors an expert is loaded in a fresh process and written back as it was read; or
converted from disk to disk, where no model is held. The limit writes the same bytes from memory in the same number
of files, synced. In turn, five times each; a row is a median. Memory: the peak of resident memory less what was
resident before the save, beside the largest group that is held at once.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.checkpoints import Model, Sizes, qwen3_moe, write_model
from support.processes import Run, growth, medians, run, say

ROUNDS = 5
LIMIT = "limit: write and sync"
SAVE, CONVERT, MLX_LM = "save, as read", "convert to canonical", "mx.save_safetensors"
MOST_OVER_LIMIT, MOST_BESIDE = 2.0, 64 << 20
_PIECE = 16 << 20
Job = Callable[[], object]


def model(scale: float) -> Model:
    """Give the checkpoint, of 1.6 GB at scale 1."""
    return qwen3_moe(Sizes(max(1, round(5 * scale)), 1024, 3072, 16, 4, 64, 32000), 128, 384)


def write_and_sync(source: Path, target: Path) -> Job:
    """Write the weight files' bytes from memory."""
    files = {path.name: path.read_bytes() for path in sorted(source.glob("*.safetensors"))}

    def job() -> object:
        target.mkdir()
        for name, content in files.items():
            view = memoryview(content)
            descriptor = os.open(target / name, os.O_WRONLY | os.O_CREAT)
            for at in range(0, len(view), _PIECE):
                os.pwrite(descriptor, view[at : at + _PIECE], at)
            os.fsync(descriptor)
            os.close(descriptor)
        return None

    return job


def save(source: Path, target: Path) -> Job:
    """Save a loaded model in its original layout."""
    from weightloom.runtime.loading.loading import load

    m = load(source)
    return lambda: m.save(target)


def convert(source: Path, target: Path) -> Job:
    """Write the canonical layout, experts stacked, from disk to disk."""
    from weightloom.runtime.choosing.choice import Wish
    from weightloom.runtime.converting.conversion import convert as run_conversion
    from weightloom.runtime.saving.order import CANONICAL, Order

    return lambda: run_conversion(source, Order(target, CANONICAL), Wish())


def save_with_mlx(source: Path, target: Path) -> Job:
    """Let MLX write the arrays of a file that it read; unsynced, in an order of its own."""
    import mlx.core as mx

    arrays: Any = {}
    for path in sorted(source.glob("*.safetensors")):
        arrays |= mx.load(str(path))  # type: ignore[operator]
    mx.eval(arrays)

    def job() -> object:
        target.mkdir()
        mx.save_safetensors(str(target / "model.safetensors"), arrays)
        return None

    return job


JOBS = {LIMIT: write_and_sync, SAVE: save, CONVERT: convert, MLX_LM: save_with_mlx}


def largest_group(source: Path) -> int:
    """Give the bytes of the largest group of the plan, from headers."""
    from weightloom.plugins.discovery.manager import PluginManager
    from weightloom.runtime.opening.opening import open_path
    from weightloom.runtime.preparing.prepare import prepare

    with open_path(source) as opened:
        plan = prepare(opened, manager=PluginManager()).plan
        return max(sum(spec.nbytes for _, spec in group.made) for group in plan.groups)


def report(results: dict[str, Run | str], largest: int) -> str:
    """Write the table."""
    base = results[LIMIT]
    lines = [f"{'way':<24}{'s':>8}{'x limit':>9}{'beside, MiB':>13}  largest group {largest >> 20} MiB"]
    for name, found in results.items():
        if isinstance(found, str) or isinstance(base, str):
            lines.append(f"{name:<24}{'-':>8}  {found}")
            continue
        lines.append(f"{name:<24}{found.seconds:>8.2f}{found.seconds / base.seconds:>9.2f}{found.peak >> 20:>13}")
    return "\n".join(lines)


def misses(results: dict[str, Run | str], largest: int) -> list[str]:
    """Name the targets that are missed."""
    base, missed = results[LIMIT], []
    for name in (SAVE, CONVERT):
        found = results[name]
        if isinstance(found, str) or isinstance(base, str):
            missed.append(f"{name}: it failed")
            continue
        if found.seconds > MOST_OVER_LIMIT * base.seconds and name == SAVE:
            missed.append(f"{name}: over the limit <= {MOST_OVER_LIMIT:g}")
        if found.peak > MOST_BESIDE + largest:
            missed.append(f"{name}: beside <= 64 MiB + the largest group")
    return missed


def main() -> int:
    """Measure and print; 1 when a target is missed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--job")
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--scale", type=float, default=1.0)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    asked = arguments.parse_args()
    if asked.job:
        target = asked.folder.parent / "target"
        say(growth(JOBS[asked.job](asked.folder, target)))
    with tempfile.TemporaryDirectory() as name:
        source = write_model(Path(name) / "model", made := model(asked.scale))
        print(f"qwen3_moe, {made.nbytes / 1e9:.2f} GB", flush=True)
        largest = largest_group(source)

        def one(job: str) -> Run | str:
            found = run(Path(__file__).resolve(), job, source)
            shutil.rmtree(source.parent / "target", ignore_errors=True)
            os.sync()
            return found

        results = medians(list(JOBS), asked.rounds, one)
    print(report(results, largest))
    missed = misses(results, largest)
    print("\n".join(f"missed: {target}" for target in missed) or "all targets met")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
