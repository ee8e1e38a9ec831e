"""What building one decode step costs the host: weightloom and mlx-lm on the same tiny Llama, step by step in turn.

    python benchmarks/host_steps.py [--layers 32] [--steps 200]

A tiny model's arrays cost next to nothing, so what is left of a step is what each token costs in Python, and in MLX's
building and starting of operations. Both run as they are written, without products fused or blocks compiled. Times are
of the thread that builds the step, by its own clock: other load on the machine does not count, nor what MLX computes in
threads of its own. Exits with 1 where weightloom's step takes longer than mlx-lm's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import mlx.core as mx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.support.checkpoints import Sizes, llama, write_model  # noqa: E402

PROMPT = 16
TARGET = 1.0
Decode = Callable[[], tuple[float, float]]
"""One step: the seconds until it is built, and until it is done."""


def main() -> int:
    """Run both in turn, print the table, say whether the bar holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    try:
        import mlx_lm  # noqa: F401
    except ImportError:
        print("mlx-lm is not installed: nothing to compare with")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        write_model(path, llama(Sizes(args.layers, 64, 128, 4, 2, 16, 256)))
        ours, theirs = _decoding(_weightloom(path)), _decoding(_mlx_lm(path))
        taken = [(ours(), theirs()) for _ in range(args.steps)]
    return show(taken)


def show(taken: list[tuple[tuple[float, float], tuple[float, float]]]) -> int:
    """Print medians and their ratios; 1 where a whole step takes longer than mlx-lm's."""
    print(f"{'decode step, host time':<28}{'weightloom ms':>15}{'mlx-lm ms':>12}{'ratio':>8}  target <= {TARGET:g}")
    ratios: list[float] = []
    for part, name in enumerate(("built", "built and evaluated")):
        ours, theirs = (1e3 * median(step[side][part] for step in taken) for side in (0, 1))
        ratios.append(ours / theirs)
        print(f"{name:<28}{ours:>15.3f}{theirs:>12.3f}{ratios[-1]:>8.2f}  {'ok' if ratios[-1] <= TARGET else 'over'}")
    return int(max(ratios) > TARGET)


def _decoding(start: tuple[Any, Any]) -> Decode:
    """Feed a prompt, and give what makes one token after another."""
    model, cache = start
    token = mx.argmax(model(mx.arange(1, PROMPT + 1)[None], cache=cache)[:, -1:], axis=-1)
    mx.eval(token)

    def step() -> tuple[float, float]:
        nonlocal token
        begun = time.thread_time()
        token = mx.argmax(model(token, cache=cache), axis=-1)
        built = time.thread_time()
        mx.eval(token)
        return built - begun, time.thread_time() - begun

    return step


def _weightloom(path: Path) -> tuple[Any, Any]:
    from weightloom.runtime import load

    model: Any = load(path, fuse=False).model
    return model, model.make_cache()


def _mlx_lm(path: Path) -> tuple[Any, Any]:
    from mlx_lm.models.cache import make_prompt_cache
    from mlx_lm.utils import load_model

    model, _ = load_model(path)
    return model, make_prompt_cache(model)


if __name__ == "__main__":
    sys.exit(main())
