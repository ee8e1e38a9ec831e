"""One process of a run that is cut among ranks: loads, generates, and writes what it saw to a file of its own.

    python -m benchmarks.support.ranks weightloom|mlx-lm MODEL RESULTS [--prefill N] [--decode N] [--dtype NAME]

The prompt is token ids, so no tokenizer is needed. Each figure is that of a second run, the first one warms up.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx

PROMPT = 16


def main() -> None:
    """Load with one of the two, measure, write RESULTS/rank-N.json."""
    parser = argparse.ArgumentParser()
    parser.add_argument("loader", choices=("weightloom", "mlx-lm"))
    parser.add_argument("model", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--prefill", type=int, default=2048)
    parser.add_argument("--decode", type=int, default=64)
    parser.add_argument("--dtype", help="cast the parameters (weightloom)")
    args = parser.parse_args()
    from weightloom.runtime.loading.ranks import find_group

    group = find_group()
    vocab = int(json.loads((args.model / "config.json").read_text())["vocab_size"])
    read, start = bytes_read(), time.perf_counter()
    steps = _mlx_lm(args.model, group) if args.loader == "mlx-lm" else _weightloom(args.model, group, args.dtype)
    loaded = time.perf_counter() - start
    figures = {"load_s": loaded, "read": bytes_read() - read, **measure(steps, vocab, args.prefill, args.decode)}
    rank = 0 if group is None else group.rank()
    (args.results / f"rank-{rank}.json").write_text(json.dumps(figures))


Steps = Callable[[Sequence[int], int], Iterator[int]]
"""From a prompt's ids and a count to the ids that follow."""


def measure(steps: Steps, vocab: int, prefill: int, decode: int) -> dict[str, Any]:
    """Time the first token after a long prompt and the tokens after a short one."""
    short, long = ([(31 * n + 7) % vocab for n in range(count)] for count in (PROMPT, prefill))
    ids: list[int] = []
    first = rest = 0.0
    for _ in range(2):
        start = time.perf_counter()
        list(steps(long, 1))
        first = time.perf_counter() - start
        made = steps(short, decode)
        ids = [next(made)]
        start = time.perf_counter()
        ids += made
        rest = time.perf_counter() - start
    return {"ids": ids, "prefill_per_s": prefill / first, "decode_per_s": (decode - 1) / rest}


def bytes_read() -> int:
    """Give what this process has read from files so far; 0 where the system does not count it."""
    from weightloom.runtime.loading import ranks

    return ranks.bytes_read() or 0


def _weightloom(model: Path, group: mx.distributed.Group | None, dtype: str | None) -> Steps:
    from weightloom.runtime import load
    from weightloom.runtime.running.decoding import generate_ids

    m = load(model, dtype, sharding=None if group is None else "tensor")
    return lambda prompt, count: generate_ids(m, prompt, count)


def _mlx_lm(model: Path, group: mx.distributed.Group | None) -> Steps:
    """Load as mlx_lm.utils.sharded_load does, less its tokenizer."""
    from mlx_lm.generate import generate_step
    from mlx_lm.utils import load_model

    made, _ = load_model(model, lazy=True, strict=False)
    if group is not None:
        made.shard(group)
    mx.eval(made.parameters())

    def steps(prompt: Sequence[int], count: int) -> Iterator[int]:
        for token, _ in generate_step(mx.array(prompt), made, max_tokens=count):
            yield int(token)

    return steps


if __name__ == "__main__":
    main()
