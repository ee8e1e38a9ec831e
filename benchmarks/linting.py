"""Print how long `rules lint` takes for many rules, over the time to read them: that must not grow with their number.

Each round measures every size once; a row is a median over rounds. Times are of this process alone.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from weightloom.rules.document import RuleFile
from weightloom.rules.linting.lint import lint_file
from weightloom.rules.parse import parse_rules

ROUNDS = 3
SIZES = (30, 300, 3000)
TARGET = 5.0
HEAD = "schema: 1\nfamily: many\nlayouts:\n  hf:\n    rules:\n"


def rules(count: int) -> bytes:
    """Write a file of renames and converters, each with names of its own."""
    return (HEAD + "".join(f"      - {converter(n) if n % 4 == 3 else rename(n)}\n" for n in range(count))).encode()


def rename(n: int) -> str:
    """Write a rename of one part of every layer."""
    return f"rename: {{from: '^old{n}\\.layers\\.(\\d+)\\.part{n}', to: 'new{n}.layers.\\1.piece{n}'}}"


def converter(n: int) -> str:
    """Write a converter of a list of experts."""
    sources = ", ".join(f"'block{n}\\.experts\\.*.w{w}\\.weight'" for w in (1, 3))
    ops = "{MergeModulelist: {}}, {Concatenate: {dim: 1}}"
    return f"convert: {{from: [{sources}], to: 'block{n}.both{n}', ops: [{ops}]}}"


def seconds(step: Callable[[], object]) -> float:
    """Give the processor's time that a step takes."""
    start = time.process_time()
    step()
    return time.process_time() - start


def measure(count: int) -> tuple[float, float]:
    """Give the time to read and to lint a file of so many rules."""
    text = rules(count)
    found: list[RuleFile] = []
    reading = seconds(lambda: found.append(parse_rules(text, "many.yaml")))
    return reading, seconds(lambda: lint_file(found[0]))


def main() -> int:
    """Measure and print; 0 whatever the ratios."""
    rounds = [{count: measure(count) for count in SIZES} for _ in range(ROUNDS)]
    print(f"{'rules lint':<28}{'read s':>8}{'lint s':>8}{'ratio':>8}  target <= {TARGET:g}")
    for count in SIZES:
        reading, linting = (statistics.median(taken[count][part] for taken in rounds) for part in (0, 1))
        ratio = linting / reading
        verdict = "ok" if ratio <= TARGET else "over"
        print(f"{f'{count} rules':<28}{reading:>8.2f}{linting:>8.2f}{ratio:>8.1f}  {verdict}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
