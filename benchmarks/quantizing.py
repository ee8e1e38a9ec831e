"""Print how long quantizing to 4 bits takes from disk to disk, and how far memory grows, beside mlx-lm.

A Qwen3-MoE of 200 MB with three tensors an expert is converted in fresh processes, imports not counted, in turn; a row
is a median. mlx-lm does what its `convert` does, but for the tokenizer: load lazily, quantize, write.
"""

import argparse
import importlib
import shutil
import sys
import tempfile
from pathlib import Path

from support.checkpoints import Model, Sizes, qwen3_moe, write_model
from support.processes import Job, Run, medians, run, serve

ROUNDS = 3
OURS, PEER = "weightloom", "mlx-lm"
BESIDE = 64 << 20
MOST_OVER_PEER = 2.0
GROUP, BITS = 64, 4


def model() -> Model:
    """Give the checkpoint: four layers of 32 experts, whose matrices are 0.5 MiB each."""
    return qwen3_moe(Sizes(4, 512, 1536, 8, 4, 64, 8000), 32, 512)


def weightloom() -> Job:
    """Convert as a user does."""
    from weightloom.plugins.architectures import qwen3_moe as _  # noqa: F401
    from weightloom.runtime.choosing.choice import Wish
    from weightloom.runtime.converting.conversion import Order, convert
    from weightloom.runtime.quantizing.wish import asked_quantizing

    recipe = asked_quantizing(f"{BITS}bit")
    return lambda folder: convert(folder, Order(target(folder, OURS), quantizing=recipe), Wish())


def mlx_lm() -> Job:
    """Do the steps of mlx-lm's convert."""
    utils = importlib.import_module("mlx_lm.utils")
    importlib.import_module("mlx_lm.models.qwen3_moe")

    def job(folder: Path) -> object:
        loaded, config = utils.load_model(folder, lazy=True)
        packed, config = utils.quantize_model(loaded, config, GROUP, BITS)
        utils.save_model(target(folder, PEER), packed, donate_model=True)
        utils.save_config(config, target(folder, PEER) / "config.json")
        return None

    return job


JOBS = {OURS: weightloom, PEER: mlx_lm}


def target(folder: Path, name: str) -> Path:
    """Give the folder that a job writes."""
    return folder.parent / name


def weights_in(folder: Path) -> int:
    """Give the bytes of the weight files."""
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def largest_group(made: Model) -> int:
    """Give the bytes of the experts that become one stack, gates and ups of a layer, as floats and packed."""
    sizes = made.config
    count = 2 * sizes["num_experts"] * sizes["moe_intermediate_size"] * sizes["hidden_size"]
    return int(2 * count + count * (BITS + 32 / GROUP) / 8)


def table(results: dict[str, Run | str], result: int, made: Model) -> list[str]:
    """Write the rows: seconds and the processor's over mlx-lm's, peak over the bytes that are written."""
    base = results[PEER]
    size = f"{made.nbytes / 1e6:.0f} MB to {result / 1e6:.0f} MB"
    lines = [f"{size:<18}{'s':>8}{'x':>7}{'cpu s':>8}{'x':>7}{'peak MB':>9}{'x result':>10}"]
    for name, found in results.items():
        if isinstance(found, str):
            lines.append(f"{name:<18}{'-':>8}  {found}")
            continue
        over, used = (
            (found.seconds / base.seconds, found.processor / base.processor) if isinstance(base, Run) else (1.0, 1.0)
        )
        times = f"{found.seconds:>8.2f}{over:>7.2f}{found.processor:>8.2f}{used:>7.2f}"
        lines.append(f"{name:<18}{times}{found.peak / 1e6:>9.0f}{found.peak / result:>10.2f}")
    return lines


def misses(results: dict[str, Run | str], made: Model) -> list[str]:
    """Name the targets that are missed."""
    ours, peer = results[OURS], results[PEER]
    if isinstance(ours, str):
        return ["a run failed"]
    most = largest_group(made) + BESIDE
    found = {
        f"peak <= {most / 1e6:.0f} MB, the largest group and 64 MiB": ours.peak <= most,
        f"time over mlx-lm <= {MOST_OVER_PEER:g}": isinstance(peer, str)
        or ours.processor <= MOST_OVER_PEER * peer.processor,
    }
    return [text for text, met in found.items() if not met]


def main() -> int:
    """Measure and print; 1 when a target is missed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--job")
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    asked = arguments.parse_args()
    if asked.job:
        serve(JOBS, asked.job, asked.folder)
    with tempfile.TemporaryDirectory() as name:
        source = write_model(Path(name) / "model", made := model())

        def one(job: str) -> Run | str:
            shutil.rmtree(target(source, job), ignore_errors=True)
            return run(Path(__file__).resolve(), job, source)

        results = medians(list(JOBS), asked.rounds, one)
        print("\n".join(table(results, weights_in(target(source, OURS)), made)), flush=True)
    found = misses(results, made)
    print("\n".join(f"missed: {text}" for text in found) or "no target missed")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
