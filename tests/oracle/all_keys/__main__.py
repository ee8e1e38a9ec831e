"""Compare every key, and print what differs: `python -m tests.oracle.all_keys --only mixtral,llava`."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path

from tests.oracle.all_keys.check import check
from tests.oracle.all_keys.jobs import jobs
from tests.oracle.all_keys.outcome import lines, write
from tests.oracle.all_keys.precision import PREPARED
from tests.oracle.all_keys.workers import run


def main() -> None:
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "OMP_NUM_THREADS": "1"}
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.all_keys", description=__doc__)
    parser.add_argument("--only", default="", help="keys, or key#variant, with commas between")
    parser.add_argument("--between", default="a,z", help="keys by their first letters: a,k")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dtype", default="float32", choices=PREPARED, help="of the checkpoints")
    parser.add_argument("--out", type=Path, default=Path("all_keys.json"), help="where the outcomes go")
    given = parser.parse_args()
    first, last = given.between.split(",")
    chosen = [job for job in jobs(filter(None, given.only.split(","))) if first <= job.key[0].lower() <= last]
    found = []
    for outcome in run(chosen, partial(check, dtype=given.dtype), given.workers):
        found.append(outcome)
        print(f"{len(found)}/{len(chosen)} {outcome.kind} {outcome.job}", flush=True)
    write(found, given.out)
    print("\n".join(lines(found)))


main()
