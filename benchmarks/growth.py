"""Print how the cost of planning and of loading grows with the size of a checkpoint.

Planning takes 1, 2, 4 and 8 times the tensors (DeepSeek-V3 of so many layers, without bytes), loading 1, 2, 4 and 8
times the bytes (a Qwen3-MoE in the page cache). Cost is fitted by size to a power, by least squares on logarithms: 1 is
linear. Each figure is a median over rounds, in which all sizes take turns. Planning runs on one thread and is given as
the process's own time; loading is wall time, in fresh processes.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression, median

from support.checkpoints import Sizes, qwen3_moe, write_model
from support.processes import Run, medians, run, serve
from support.published import Published, deepseek_v3, rules_of

from weightloom.engine import Checkpoint, build_plan

ROUNDS = 5
MOST = 1.1
TIMES = (1, 2, 4, 8)
_LAYERS = 8

Job = Callable[[], object]


@dataclass(frozen=True)
class Growth:
    """Seconds by size; sizes are counted in `unit`."""

    unit: str
    sizes: Sequence[int]
    seconds: Sequence[float]

    @property
    def exponent(self) -> float:
        """The power of the size that the cost grows with."""
        return linear_regression(list(map(math.log, self.sizes)), list(map(math.log, self.seconds))).slope


def measured(jobs: dict[int, Job], rounds: int) -> Growth:
    """Run jobs, by the number of tensors that they work on, in turn; give medians."""
    for job in jobs.values():
        job()  # patterns are compiled once
    times = [[_seconds(job) for job in jobs.values()] for _ in range(rounds)]
    return Growth("tensors", list(jobs), [median(each) for each in zip(*times, strict=True)])


def _seconds(job: Job) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def planning(models: Sequence[Published]) -> dict[int, Job]:
    """Plan each model on a checkpoint that is open, and look at every group once."""
    return {len(model.specs): _plan(model) for model in models}


def _plan(model: Published) -> Job:
    checkpoint, rules = Checkpoint.from_specs(model.specs), rules_of(model.model_type)
    return lambda: sum(len(group.targets) for group in build_plan(checkpoint, rules, config=model.config).groups)


def load() -> Callable[[Path], object]:
    """Load a Qwen3-MoE into MLX by a plan, the checkpoint's opening included."""
    import mlx.core  # noqa: F401

    rules = rules_of("qwen3_moe")
    return lambda folder: build_plan(Checkpoint.open(folder), rules).load()


def loading(folder: Path, scale: float, rounds: int) -> Growth:
    """Write checkpoints, and load each in turn."""
    models = {times: qwen3_moe(Sizes(times, 1024, 1024, 8, 4, 64, 4096), round(32 * scale), 512) for times in TIMES}
    folders = {f"{times}x": write_model(folder / f"{times}x", model) for times, model in models.items()}
    found = medians(list(folders), rounds, lambda name: run(Path(__file__), "load", folders[name]))
    seconds = [each.seconds for each in found.values() if isinstance(each, Run)]
    if len(seconds) < len(found):
        raise SystemExit(f"a run failed: {next(each for each in found.values() if isinstance(each, str))}")
    return Growth("bytes", [model.nbytes for model in models.values()], seconds)


def report(results: dict[str, Growth]) -> str:
    """Write the table: a line for each thing that is measured."""
    head = "".join(f"{f'{times}x ms':>10}" for times in TIMES)
    lines = [f"{'growth':<22}{head}{'exponent':>10}  target <= {MOST:g}"]
    for name, found in results.items():
        cells = "".join(f"{1e3 * seconds:>10,.1f}" for seconds in found.seconds)
        lines.append(f"{name:<22}{cells}{found.exponent:>10.2f}  {'ok' if found.exponent <= MOST else 'over'}")
    return "\n".join(lines)


def as_json(results: dict[str, Growth]) -> dict[str, object]:
    """Give the table as JSON values."""
    rows = {
        name: {"unit": each.unit, "sizes": each.sizes, "seconds": each.seconds, "exponent": each.exponent}
        for name, each in results.items()
    }
    return {"schema": 1, "most": MOST, "rows": rows}


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 where something grows faster than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--scale", type=float, default=1.0, help="of the bytes that are loaded")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.job:
        serve({"load": load}, options.job, options.folder)
    models = [deepseek_v3(_LAYERS * times) for times in TIMES]
    with tempfile.TemporaryDirectory() as name:
        results = {
            "planning, by tensors": measured(planning(models), options.rounds),
            "loading, by bytes": loading(Path(name), options.scale, options.rounds),
        }
    print(json.dumps(as_json(results), indent=2) if options.json else report(results))
    return int(any(found.exponent > MOST for found in results.values()))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
