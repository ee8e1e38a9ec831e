"""Print how long loading takes and how far memory grows, over reading the same bytes into memory.

Two checkpoints of 1.6 GB, a Qwen3-MoE with three tensors an expert and a dense Llama, are loaded in fresh
processes, imports not counted, in turn, five times each; a row is a median, of the clock and of the processor's own
time, which other work disturbs less. Cold: the files' pages are dropped before each run, where the kernel does it.
"""

import argparse
import importlib
import mmap
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.checkpoints import Model, Sizes, llama, qwen3_moe, write_model
from support.processes import Job, Run, drop_cache, medians, run, serve

ROUNDS = 5
LIMIT = "limit: read the bytes"
OURS = "weightloom"
STACKING = "stacking with MLX"
MOST_OVER_LIMIT, LEAST_UNDER_STACKING, MOST_MEMORY = 2.0, 5.0, 1.05
_PIECE = 16 << 20


def models(scale: float) -> dict[str, Model]:
    """Give the checkpoints, of 1.6 GB each at scale 1."""
    layers = max(1, round(5 * scale))
    moe = Sizes(layers, 1024, 3072, 16, 4, 64, 32000)
    dense = Sizes(max(1, round(15 * scale)), 2048, 5632, 32, 32, 64, 16000)
    return {"qwen3_moe": qwen3_moe(moe, 128, 384), "llama": llama(dense)}


def read_bytes() -> Job:
    """Read all weight files into anonymous memory, with as many threads as weightloom takes."""
    from weightloom.engine.reading.threads import HOST

    def job(folder: Path) -> object:
        files = sorted(folder.glob("*.safetensors"))
        kept = [(path, mmap.mmap(-1, path.stat().st_size)) for path in files]
        with ThreadPoolExecutor(HOST) as pool:
            for path, memory in kept:
                descriptor = os.open(path, os.O_RDONLY)
                view = memoryview(memory)
                pieces = [(at, view[at : at + _PIECE]) for at in range(0, len(view), _PIECE)]
                list(pool.map(lambda piece, d=descriptor: os.preadv(d, [piece[1]], piece[0]), pieces))
                os.close(descriptor)
        return kept

    return job


def weightloom() -> Job:
    """Load the model as a user does."""
    from weightloom.plugins.architectures import llama, qwen3_moe  # noqa: F401
    from weightloom.runtime.loading.loading import load

    return load


def stacking_with_mlx() -> Job:
    """Let MLX load all tensors, and stack the experts, layer by layer."""
    import mlx.core as mx

    def job(folder: Path) -> object:
        arrays: dict[str, mx.array] = {}
        for path in sorted(folder.glob("*.safetensors")):
            found = mx.load(str(path))
            assert isinstance(found, dict)
            arrays |= found
        grouped: dict[str, list[mx.array]] = {}
        experts = sum(".experts." in name and "layers.0." in name for name in arrays) // 3
        for name in [name for name in arrays if ".experts.0." in name]:
            parts = [arrays.pop(name.replace(".experts.0.", f".experts.{n}.")) for n in range(experts)]
            grouped[name] = parts
        for name, parts in grouped.items():
            arrays[name] = mx.stack(parts)
        del grouped, found
        mx.eval(arrays)
        return arrays

    return job


def mlx_lm() -> Job:
    """Load the model with mlx-lm."""
    utils = importlib.import_module("mlx_lm.utils")
    importlib.import_module("mlx_lm.models.qwen3_moe")
    importlib.import_module("mlx_lm.models.llama")

    def job(folder: Path) -> object:
        return utils.load_model(folder)

    return job


def transformers() -> Job:
    """Load the model with Transformers."""
    library = importlib.import_module("transformers")
    auto = library.AutoModelForCausalLM
    importlib.import_module("transformers.models.qwen3_moe.modeling_qwen3_moe")
    importlib.import_module("transformers.models.llama.modeling_llama")

    def job(folder: Path) -> object:
        return auto.from_pretrained(folder, dtype="auto")

    return job


JOBS = {
    LIMIT: read_bytes,
    OURS: weightloom,
    STACKING: stacking_with_mlx,
    "mlx-lm": mlx_lm,
    "Transformers": transformers,
}


def table(title: str, results: dict[str, Run | str], nbytes: int) -> list[str]:
    """Write the rows of one checkpoint."""
    base = results[LIMIT]
    lines = [f"{title:<34}{'s':>7}{'x limit':>9}{'cpu s':>7}{'x limit':>9}{'peak x':>8}"]
    for name, found in results.items():
        if isinstance(found, str) or isinstance(base, str):
            lines.append(f"  {name:<32}{'-':>7}  {found}")
        else:
            clock = f"{found.seconds:>7.2f}{found.seconds / base.seconds:>9.2f}"
            processor = f"{found.processor:>7.2f}{found.processor / base.processor:>9.2f}"
            lines.append(f"  {name:<32}{clock}{processor}{found.peak / nbytes:>8.2f}")
    return lines


def out_of_reach(results: dict[str, Run | str]) -> bool:
    """Say whether even reading the bytes is not so much faster than stacking."""
    base, stacking = results[LIMIT], results[STACKING]
    known = isinstance(base, Run) and isinstance(stacking, Run)
    return known and stacking.seconds < LEAST_UNDER_STACKING * base.seconds


def misses(results: dict[str, Run | str], nbytes: int, stacked: bool) -> list[str]:
    """Name the targets that are missed; only where there is something to stack, stacking is one."""
    ours, base, stacking = results[OURS], results[LIMIT], results[STACKING]
    if isinstance(ours, str) or isinstance(base, str) or isinstance(stacking, str):
        return ["a run failed"]
    found = {
        f"over the limit <= {MOST_OVER_LIMIT:g}": ours.seconds <= MOST_OVER_LIMIT * base.seconds,
        f"faster than stacking >= {LEAST_UNDER_STACKING:g}": not stacked
        or out_of_reach(results)
        or stacking.seconds >= LEAST_UNDER_STACKING * ours.seconds,
        f"peak over parameters <= {MOST_MEMORY:g}": ours.peak <= MOST_MEMORY * nbytes,
    }
    return [target for target, met in found.items() if not met]


def main() -> int:
    """Measure and print; 1 when a target is missed with a warm cache."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--job")
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--scale", type=float, default=1.0)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--only", nargs="*", default=list(JOBS), help="of the ways")
    arguments.add_argument("--models", nargs="*", default=["qwen3_moe", "llama"])
    asked = arguments.parse_args()
    if asked.job:
        serve(JOBS, asked.job, asked.folder)
    missed = 0
    chosen = models(asked.scale)
    for title, model in ((name, chosen[name]) for name in asked.models):
        with tempfile.TemporaryDirectory() as name:
            missed += measure(title, model, write_model(Path(name) / "model", model), asked.rounds, asked.only)
    return int(missed > 0)


def measure(title: str, model: Model, folder: Path, rounds: int, names: list[str]) -> int:
    """Measure one checkpoint, warm and cold; give how many targets are missed."""
    script = Path(__file__).resolve()
    warm = medians(names, rounds, lambda name: run(script, name, folder))
    print("\n".join(table(f"{title}, {model.nbytes / 1e9:.2f} GB, warm", warm, model.nbytes)), flush=True)
    found = misses(warm, model.nbytes, title == "qwen3_moe") if set(warm) >= {LIMIT, OURS, STACKING} else []
    if title == "qwen3_moe" and set(warm) >= {LIMIT, STACKING} and out_of_reach(warm):
        print(f"  out of reach: {LEAST_UNDER_STACKING:g} times faster than stacking, for reading alone is not")
    print("\n".join(f"  missed: {target}" for target in found) or "  no target within reach missed", flush=True)
    if drop_cache(folder):

        def cold(name: str) -> Run | str:
            drop_cache(folder)
            return run(script, name, folder)

        results = medians(names, rounds, cold)
        print("\n".join(table(f"{title}, cold", results, model.nbytes)), flush=True)
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
