"""Print how much faster plans are made than Transformers renames the same names.

The names are those of three published models. What is measured: `build_plan` on a checkpoint that is open, the same
with each of its groups looked at once, and the loop in which Transformers renames every key and collects what its
converters take. Both get the rules of the model type and the legacy names. Times are the process's own, since each
runs on one thread; the machine's other work leaves them alone. A row is a median over rounds, taken in turn.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from support.published import Published, published, rules_of

from weightloom.engine import Checkpoint, Plan, build_plan

ROUNDS = 5
TARGET = 50.0
FIRST = "DeepSeek-V3, FP8"
PLAN, GROUPS, RENAMES = "build_plan", "and all groups", "Transformers"


@dataclass(frozen=True)
class Result:
    """Seconds of each thing measured, on so many names; nothing of Transformers where it is not installed."""

    names: int
    seconds: dict[str, float]

    def faster(self, ours: str) -> float | None:
        """Give how many times faster we are."""
        return self.seconds[RENAMES] / self.seconds[ours] if RENAMES in self.seconds else None


def planning(model: Published) -> Callable[[], Plan]:
    """Open a checkpoint, and give what makes its plan."""
    checkpoint, rules = Checkpoint.from_specs(model.specs), rules_of(model.model_type)
    return lambda: build_plan(checkpoint, rules, config=model.config)


def renaming(model: Published) -> Callable[[], object] | None:
    """Give what renames the names as Transformers does when it loads; None where it is not installed."""
    try:
        from transformers import conversion_mapping
        from transformers.core_model_loading import WeightConverter, WeightRenaming
    except ImportError:
        return None
    mapping = conversion_mapping._build_checkpoint_conversion_mapping()
    rules = [*mapping[model.model_type], *mapping["legacy"]]
    renamings = [rule for rule in rules if isinstance(rule, WeightRenaming)]
    converters = [rule for rule in rules if isinstance(rule, WeightConverter)]
    return lambda: _collected(list(model.specs), renamings, converters)


def _collected(names: list[str], renamings: list[object], converters: list[object]) -> dict[str, object]:
    """Do what Transformers' loading does with each key, but for the tensors."""
    from copy import deepcopy

    from transformers.core_model_loading import WeightRenaming, dot_natural_key, rename_source_key

    by_pattern = {pattern: converter for converter in converters for pattern in converter.source_patterns}
    found: dict[str, object] = {}
    for name in sorted(names, key=dot_natural_key):
        renamed, pattern = rename_source_key(name, renamings, converters, "model", {})
        made = WeightRenaming(name, renamed) if pattern is None else deepcopy(by_pattern[pattern])
        found.setdefault(renamed, made).add_tensor(renamed, name, pattern or name, None)
    return found


def measured(model: Published, rounds: int) -> Result:
    """Run all in turn; give medians."""
    make, rename = planning(model), renaming(model)
    jobs: dict[str, Callable[[], object]] = {PLAN: make, GROUPS: lambda: sum(len(g.targets) for g in make().groups)}
    if rename is not None:
        jobs[RENAMES] = rename
    for name in (PLAN, GROUPS):
        jobs[name]()  # patterns are compiled once
    times = [{name: _seconds(job) for name, job in jobs.items()} for _ in range(rounds)]
    return Result(len(model.specs), {name: median(each[name] for each in times) for name in jobs})


def _seconds(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def report(results: dict[str, Result]) -> str:
    """Write the table: a line a model."""
    lines = [
        f"{'planning':<20}{'names':>8}{RENAMES + ' ms':>17}{PLAN + ' ms':>15}{'faster':>8}{GROUPS:>18}{'faster':>8}"
    ]
    for name, result in results.items():
        ms = {key: f"{1e3 * seconds:,.1f}" for key, seconds in result.seconds.items()}
        target = _verdict(result.faster(PLAN)) if name == FIRST else ""
        lines.append(
            f"{name:<20}{result.names:>8,}{ms.get(RENAMES, '-'):>17}{ms[PLAN]:>15}{_times(result.faster(PLAN)):>8}"
            f"{ms[GROUPS]:>18}{_times(result.faster(GROUPS)):>8}{target}"
        )
    return "\n".join(lines)


def _times(faster: float | None) -> str:
    return "-" if faster is None else f"{faster:.1f}x"


def _verdict(faster: float | None) -> str:
    if faster is None:
        return "  transformers is not installed"
    return f"  target >= {TARGET:g}x: {'ok' if faster >= TARGET else 'missed'}"


def as_json(results: dict[str, Result]) -> dict[str, object]:
    """Give the table as JSON values."""
    rows = {
        name: {
            "names": result.names,
            "seconds": result.seconds,
            "faster": {ours: result.faster(ours) for ours in (PLAN, GROUPS)},
        }
        for name, result in results.items()
    }
    return {"schema": 1, "target": {FIRST: TARGET}, "rows": rows}


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    results = {name: measured(model, options.rounds) for name, model in published().items()}
    print(json.dumps(as_json(results), indent=2) if options.json else report(results))
    return int((results[FIRST].faster(PLAN) or TARGET) < TARGET)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
