"""Print what memory loading, lazy loading and converting take for experts that are stacked on the way.

Four layers of 64 experts, each of three tensors of 1 MiB (805 MB). Peaks are by which resident memory rose in a
fresh process, imports not counted, over the bytes of the parameters (to load) or of the largest group (to convert).
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.checkpoints import Model, Sizes, qwen3_moe, write_model
from support.processes import Run, growth, run, say

EAGER, LAZY, ONE, CONVERT = "load", "load, lazy", "load, lazy, one layer run", "convert, stacking"
STACKING = "stacking with MLX"
BESIDE = 64 << 20
Job = Callable[[], object]


def model() -> Model:
    """Give the checkpoint; its vocabulary is small, so that experts are nearly all of it."""
    return qwen3_moe(Sizes(4, 1024, 3072, 16, 4, 64, 1024), 64, 512)


def load(source: Path) -> Job:
    """Load as a user does."""
    from weightloom.plugins.architectures import qwen3_moe as _  # noqa: F401
    from weightloom.runtime.loading.loading import load

    return lambda: load(source)


def load_lazily(source: Path) -> Job:
    """Load, and use nothing."""
    from weightloom.plugins.architectures import qwen3_moe as _  # noqa: F401
    from weightloom.runtime.loading.loading import load

    return lambda: load(source, lazy=True)


def use_one_layer(source: Path) -> Job:
    """Load lazily, and use the experts of one layer."""
    from weightloom.plugins.architectures import qwen3_moe as _  # noqa: F401
    from weightloom.runtime.loading.loading import load

    def job() -> object:
        m = load(source, lazy=True)
        experts: Any = m.model.model.layers[0].mlp.experts
        return m, experts.gate_up_proj, experts.down_proj

    return job


def convert(source: Path) -> Job:
    """Write the canonical layout, experts stacked, from disk to disk."""
    from weightloom.runtime.choosing.choice import Wish
    from weightloom.runtime.converting.conversion import convert
    from weightloom.runtime.saving.order import CANONICAL, Order

    return lambda: convert(source, Order(source.parent / "target", CANONICAL, overwrite=True), Wish())


def stack_with_mlx(source: Path) -> Job:
    """Let MLX load all tensors, and stack the experts, layer by layer."""
    import mlx.core as mx

    def job() -> object:
        arrays: Any = mx.load(str(source / "model.safetensors"))
        for name in [name for name in arrays if ".experts.0." in name]:
            parts = [arrays.pop(name.replace(".experts.0.", f".experts.{n}.")) for n in range(64)]
            arrays[name] = mx.stack(parts)
        mx.eval(arrays)
        return arrays

    return job


JOBS = {EAGER: load, LAZY: load_lazily, ONE: use_one_layer, CONVERT: convert, STACKING: stack_with_mlx}


def limits(made: Model) -> dict[str, tuple[str, int, int]]:
    """Give for each job what its peak is compared with, in words and bytes, and the most that it may be."""
    layer = 64 * 3 << 20
    group = 64 * 2 << 20
    return {
        EAGER: ("parameters", made.nbytes, int(1.05 * made.nbytes)),
        LAZY: ("parameters", made.nbytes, int(0.05 * made.nbytes)),
        ONE: ("experts of a layer", layer, layer + BESIDE),
        CONVERT: ("largest group", group, group + BESIDE),
        STACKING: ("parameters", made.nbytes, 0),
    }


def main() -> int:
    """Measure and print; 1 when a bound is not kept."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--job")
    arguments.add_argument("--folder", type=Path)
    asked = arguments.parse_args()
    if asked.job:
        say(growth(JOBS[asked.job](asked.folder)))
    over = 0
    with tempfile.TemporaryDirectory() as name:
        source = write_model(Path(name) / "model", made := model())
        print(f"{'peak of':<28}{'MB':>8}{'ratio':>8}  over")
        for job, (what, base, most) in limits(made).items():
            found: Run | str = run(Path(__file__).resolve(), job, source)
            if isinstance(found, str):
                print(f"{job:<28}{'-':>8}  {found}")
                over += job != STACKING
                continue
            kept = "for comparison" if not most else "ok" if found.peak <= most else f"over {most / 1e6:.0f} MB"
            over += bool(most) and found.peak > most
            print(f"{job:<28}{found.peak / 1e6:>8.0f}{found.peak / base:>8.2f}  {what}; {kept}", flush=True)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
