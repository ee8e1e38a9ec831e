"""Tokens a second, fed and made: weightloom and mlx-lm on the same checkpoints, and what fusing gives.

    python benchmarks/generating.py [--model qwen3_moe|llama|llama-4bit] [--scale 1.0] [--folder DIR] [--rounds N]

Random weights in BF16: a Qwen3-MoE (at scale 1: 16 layers, 128 experts, hidden 2048, 20 GB) and a dense Llama of the
shape of Llama 3.1 8B, that one also in 4 bits. Each way runs in fresh processes, in turn; a row is a median, and the
ratio is to mlx-lm. Decode is 64 tokens after a prompt of 16, and after one of 1,024; prefill is 2,048 tokens. Exits
with 1 where weightloom is not 1.1 times mlx-lm; where MLX does not compute on a GPU nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import mlx.core as mx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.support.checkpoints import Model, Sizes, llama, qwen3_moe, write_model  # noqa: E402
from benchmarks.support.ranks import Steps  # noqa: E402

MODELS = ("qwen3_moe", "llama", "llama-4bit")
WAYS = ("mlx-lm", "weightloom", "nothing fused", "q|k|v alone", "gate|up alone", "compiled alone")
FIGURES = ("prefill 2048", "decode at 16", "decode at 1024")
MADE = 64
LEAST = 1.1


def main() -> int:
    """Run all, print the tables, say whether the bar holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, action="append", help="one of them; again for more (all)")
    parser.add_argument("--way", choices=WAYS, action="append", help="one of them; again for more (all)")
    parser.add_argument("--scale", type=float, default=1.0, help="1.0 is the full size; layers shrink with it")
    parser.add_argument("--folder", type=Path, help="where the checkpoints are kept; else they are removed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        print(json.dumps(measure(JOBS[args.job](args.folder), args.folder)))
        return 0
    if mx.default_device() != mx.Device(mx.gpu):
        print("MLX has no GPU here: nothing is measured")
        return 0
    fine = True
    with _scratch(args.folder) as folder:
        for name in args.model or MODELS:
            fine &= show(name, run(written(name, args.scale, folder), args.way or WAYS, args.rounds))
    return 0 if fine else 1


@contextmanager
def _scratch(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def written(name: str, scale: float, folder: Path) -> Path:
    """Write a checkpoint, unless it is there."""
    path = folder / name
    if (path / "config.json").exists():
        return path
    if name == "llama-4bit":
        from weightloom.runtime import load

        load(written("llama", scale, folder), quantize="4bit", fuse=False).save(path, layout="mlx")
    else:
        write_model(path, sized(name, scale))
    return path


def sized(name: str, scale: float) -> Model:
    """Give a model with fewer layers at smaller scales."""
    if name == "qwen3_moe":
        return qwen3_moe(Sizes(max(1, round(16 * scale)), 2048, 6144, 32, 4, 128, 151936), 128, 768)
    return llama(Sizes(max(1, round(32 * scale)), 4096, 14336, 32, 8, 128, 128256))


def run(path: Path, ways: Sequence[str], rounds: int) -> dict[str, dict[str, float] | str]:
    """Run each way in turn, so many times; give each one's medians, or why it failed."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    failed: dict[str, str] = {}
    for _ in range(rounds):
        for way in ways:
            if way in failed:
                continue
            command = [sys.executable, __file__, "--job", way, "--folder", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            if done.returncode:
                failed[way] = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]
            else:
                found[way].append(json.loads(done.stdout.splitlines()[-1]))
    figures = {way: {key: median(run[key] for run in runs) for key in FIGURES} for way, runs in found.items() if runs}
    return {**figures, **failed}


def show(name: str, found: dict[str, dict[str, float] | str]) -> bool:
    """Print a model's table; say whether weightloom is as much faster as it must be."""
    theirs = found.get("mlx-lm")
    print(f"\n{name:<24}" + "".join(f"{figure + ', tokens/s':>28}" for figure in FIGURES))
    fine = True
    for way, figures in found.items():
        if isinstance(figures, str):
            print(f"{way:<24}{figures}")
            continue
        ratios = {key: figures[key] / theirs[key] for key in FIGURES} if isinstance(theirs, dict) else {}
        cells = [f"{figures[key]:,.0f}" + (f" ({ratios[key]:.2f}x)" if ratios else "") for key in FIGURES]
        print(f"{way:<24}" + "".join(f"{cell:>28}" for cell in cells), flush=True)
        fine &= way != "weightloom" or all(ratio >= LEAST for ratio in ratios.values())
    return fine


def measure(steps: Steps, path: Path) -> dict[str, float]:
    """Time a process that has loaded, each figure twice: the first warms up."""
    vocab = int(json.loads((path / "config.json").read_text())["vocab_size"])
    figures: dict[str, float] = {}
    for _ in range(2):
        figures["prefill 2048"] = 2048 / _first(steps, _prompt(2048, vocab))
        for length in (16, 1024):
            figures[f"decode at {length}"] = MADE / _rest(steps, _prompt(length, vocab))
    return figures


def _prompt(length: int, vocab: int) -> list[int]:
    return [(31 * n + 7) % vocab for n in range(length)]


def _first(steps: Steps, prompt: Sequence[int]) -> float:
    start = time.perf_counter()
    list(steps(prompt, 1))
    return time.perf_counter() - start


def _rest(steps: Steps, prompt: Sequence[int]) -> float:
    made = steps(prompt, MADE + 1)
    next(made)
    start = time.perf_counter()
    list(made)
    return time.perf_counter() - start


def _weightloom(path: Path, part: str | None = None) -> Steps:
    """Load as a user does, or with a part of what is fused by default: "", "self_attn", "mlp" or "compiled"."""
    from weightloom.plugins.modules.fusing import Fusable, compile_steps
    from weightloom.runtime import load
    from weightloom.runtime.running.decoding import generate_ids

    m = load(path, fuse=part is None)
    if part == "compiled":
        compile_steps(m.model)
    elif part:
        for name, each in m.model.named_modules():
            if name.endswith(part) and isinstance(each, Fusable):
                each.fuse()
    return lambda prompt, count: generate_ids(m, prompt, count)


def _mlx_lm(path: Path) -> Steps:
    from mlx_lm.generate import generate_step
    from mlx_lm.utils import load_model

    model, _ = load_model(path)

    def steps(prompt: Sequence[int], count: int) -> Iterator[int]:
        for token, _ in generate_step(mx.array(prompt), model, max_tokens=count):
            yield int(token)

    return steps


JOBS: dict[str, Callable[[Path], Any]] = {
    "mlx-lm": _mlx_lm,
    "weightloom": _weightloom,
    "nothing fused": lambda path: _weightloom(path, ""),
    "q|k|v alone": lambda path: _weightloom(path, "self_attn"),
    "gate|up alone": lambda path: _weightloom(path, "mlp"),
    "compiled alone": lambda path: _weightloom(path, "compiled"),
}

if __name__ == "__main__":
    sys.exit(main())
