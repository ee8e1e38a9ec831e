"""Compare families, and print a row for each: `python -m tests.oracle.mlx_layouts llama,mixtral`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tests.oracle.all_keys.outcome import write
from tests.oracle.all_keys.workers import run
from tests.oracle.mlx_layouts.check import check
from tests.oracle.mlx_layouts.families import JOBS


def main() -> None:
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "OMP_NUM_THREADS": "1"}
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.mlx_layouts", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="keys, with commas between")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where the outcomes go, as JSON")
    given = parser.parse_args()
    wanted = set(filter(None, given.only.split(",")))
    found = []
    for outcome in run([job for job in JOBS if not wanted or {job.key, str(job)} & wanted], check, given.workers):
        found.append(outcome)
        print(f"{outcome.kind:8} {outcome.job:20} {'; '.join(outcome.notes)}", flush=True)
        print("".join(f"    {reason}\n" for reason in outcome.reasons), end="", flush=True)
    if given.out:
        write(found, given.out)
    print(f"{sum(each.kind == 'ok' for each in found)} of {len(found)} families")


main()
