"""Write every key's model without loading it, and print what differs: `python -m tests.oracle.fresh --only mixtral`."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path

from tests.oracle.all_keys.outcome import lines, write
from tests.oracle.all_keys.workers import run
from tests.oracle.fresh.check import check_fresh, fresh_jobs


def main() -> None:
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "OMP_NUM_THREADS": "1"}
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.fresh", description=__doc__)
    parser.add_argument("--only", default="", help="keys, or key#variant, with commas between")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dtype", default="float32", help="of the parameters: float32, bfloat16")
    parser.add_argument("--out", type=Path, default=Path("fresh.json"), help="where the outcomes go")
    given = parser.parse_args()
    found = []
    chosen = fresh_jobs(filter(None, given.only.split(",")))
    for outcome in run(chosen, partial(check_fresh, dtype=given.dtype), given.workers):
        found.append(outcome)
        print(f"{len(found)} {outcome.kind} {outcome.job}", flush=True)
    write(found, given.out)
    print("\n".join(lines(found)))


main()
