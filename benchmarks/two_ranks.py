"""Tensor parallel: one process and two, weightloom and mlx-lm, on the same checkpoints.

    python benchmarks/two_ranks.py [--backend nccl|ring] [--model qwen3_moe|llama] [--scale 1.0] [--folder DIR]

Writes a Qwen3-MoE (at scale 1: 16 layers, 128 experts, 20 GB) and a dense 8B-shaped Llama (16 GB), random BF16. For
each it shows the greedy ids of two ranks against those of one process, what each rank read against its share, the time
to load, and tokens a second, fed and made. In BF16 a sum over ranks rounds otherwise than one over all inputs, and
random weights have likelihoods that are nearly alike; so the ids are compared in float32 too, where they must be the
same. Exits with 1 where those differ or a rank reads more than 0.51 of what can be cut and all of the rest; a cut by
inputs, whose runs are short, may read all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import mlx.core as mx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.support.checkpoints import Model, Sizes, llama, qwen3_moe, write_model  # noqa: E402

MODELS = ("qwen3_moe", "llama")
WIDE = "weightloom f32"
WAYS = {"weightloom": ("weightloom",), "mlx-lm": ("mlx-lm",), WIDE: ("weightloom", "--dtype", "float32")}
SHARE = 0.51
SHORT_RUN = 64 << 10


@dataclass(frozen=True)
class Ran:
    """What the ranks of one run said, or why there is nothing."""

    ranks: tuple[dict[str, Any], ...]
    failure: str = ""


def main() -> int:
    """Run all, print the tables, say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("nccl", "ring"), default="ring")
    parser.add_argument("--model", choices=MODELS, action="append", help="one of them; again for more (all that run)")
    parser.add_argument("--way", choices=tuple(WAYS), action="append", help="one of them; again for more (all)")
    parser.add_argument("--scale", type=float, default=0.02, help="1.0 is the full size (0.02)")
    parser.add_argument("--folder", type=Path, help="where the checkpoints are kept; else they are removed")
    parser.add_argument("--prefill", type=int, default=64)
    parser.add_argument("--decode", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    # MLX multiplies by stacked matrices in BF16 on a GPU only.
    names = args.model or (MODELS if mx.default_device() == mx.Device(mx.gpu) else ("llama",))
    fine, found = True, {}
    with _scratch(args.folder) as folder:
        for name in names:
            model = sized(name, args.scale)
            path = folder / name
            if not (path / "config.json").exists():
                write_model(path, model)
            runs = {(way, size): run(way, size, path, args) for way in args.way or WAYS for size in (1, 2)}
            fine &= show(name, model, runs)
            found[name] = {f"{way} x{size}": ran.ranks or ran.failure for (way, size), ran in runs.items()}
    if args.json:
        print(json.dumps({"schema": 1, "benchmark": "two_ranks", "runs": found}))
    return 0 if fine else 1


@contextmanager
def _scratch(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def sized(name: str, scale: float) -> Model:
    """Give the model at a scale of its size: fewer layers, and at small scales narrower."""
    layers = max(2, round((16 if name == "qwen3_moe" else 32) * scale))
    width = 1 if scale > 0.25 else 8
    if name == "qwen3_moe":
        sizes = Sizes(layers, 2048 // width, 6144 // width, 32, 4, 128 // width, 151936 // width)
        return qwen3_moe(sizes, 128 // width, 768 // width)
    return llama(Sizes(layers, 4096 // width, 14336 // width, 32, 8, 128 // width, 128256 // width))


def run(way: str, size: int, path: Path, args: argparse.Namespace) -> Ran:
    """Run one way as so many ranks."""
    with tempfile.TemporaryDirectory() as results:
        loader, *more = WAYS[way]
        job = ["-m", "benchmarks.support.ranks", loader, str(path), results, *more]
        job += ["--prefill", str(args.prefill), "--decode", str(args.decode)]
        command = [sys.executable, *job]
        if size > 1:
            launch = "from mlx._distributed_utils.launch import main; main()"
            command = [sys.executable, "-c", launch, "-n", str(size), "--backend", args.backend, *command]
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
        )
        said = sorted(Path(results).iterdir())
        if done.returncode or len(said) != size:
            return Ran((), " | ".join(done.stderr.strip().splitlines()[-3:])[-300:] or f"exit code {done.returncode}")
        return Ran(tuple(json.loads(each.read_text()) for each in said))


def show(name: str, model: Model, runs: dict[tuple[str, int], Ran]) -> bool:
    """Print the table of one model; say whether its bars hold."""
    print(f"\n{name}, {model.nbytes / 1e9:.2f} GB")
    print(f"{'':14} ranks  load s  read GB a rank   fed/s    made/s   tokens as one process")
    alone = {way: ran.ranks[0]["ids"] for (way, size), ran in runs.items() if size == 1 and ran.ranks}
    fine = True
    for (way, size), ran in runs.items():
        if not ran.ranks:
            print(f"{way:14} {size:5}  {ran.failure}")
            fine &= way == "mlx-lm"
            continue
        same = [sum(a == b for a, b in zip(r["ids"], alone.get(way, ()), strict=False)) for r in ran.ranks]
        read = ", ".join(f"{rank['read'] / 1e9:.2f}" for rank in ran.ranks)
        slowest = {key: min(rank[key] for rank in ran.ranks) for key in ("prefill_per_s", "decode_per_s")}
        load = max(rank["load_s"] for rank in ran.ranks)
        print(
            f"{way:14} {size:5} {load:7.2f} {read:>15} {slowest['prefill_per_s']:8.0f}"
            f" {slowest['decode_per_s']:9.1f}   {min(same)} of {len(ran.ranks[0]['ids'])}"
        )
        fine &= way != WIDE or min(same) == len(ran.ranks[0]["ids"])
        fine &= way != "weightloom" or size == 1 or all(rank["read"] <= allowed(model) for rank in ran.ranks)
    print(f"a rank may read {allowed(model) / 1e9:.2f} GB")
    return fine


def allowed(model: Model) -> int:
    """Give the bytes that a rank of two may read: 0.51 of what can be cut, all of the rest, and the headers."""
    cut = sum(2 * prod(shape) for name, shape in model.shapes.items() if _is_read_in_part(name, shape))
    return int(SHARE * cut) + (model.nbytes - cut) + (4 << 20)


def _is_read_in_part(name: str, shape: tuple[int, ...]) -> bool:
    if len(shape) < 2 or ".mlp.gate." in name:
        return False
    return not name.endswith(("o_proj.weight", "down_proj.weight")) or shape[1] >= SHORT_RUN


if __name__ == "__main__":
    raise SystemExit(main())
