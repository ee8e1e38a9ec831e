"""Runs in fresh processes: how long a call took and how far the process's memory grew."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import NoReturn

Job = Callable[[Path], object]
Prepare = Callable[[], Job]


@dataclass(frozen=True)
class Run:
    """One run: seconds of the clock and of the processor, and bytes by which resident memory rose in it."""

    seconds: float
    processor: float
    peak: int


def resident_peak() -> int:
    """Give VmHWM of this process, in bytes. Linux only."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise OSError("no VmHWM in /proc/self/status")


def resident() -> int:
    """Give VmRSS of this process, in bytes, and let its peak begin anew. Linux only."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise OSError("no VmRSS in /proc/self/status")


def took(job: Callable[[], object], before: int) -> Run:
    """Run a job; memory counts from `before` on."""
    start, used = time.perf_counter(), time.process_time()
    kept = job()
    seconds, processor = time.perf_counter() - start, time.process_time() - used
    peak = resident_peak() - before
    del kept
    return Run(seconds, processor, peak)


def growth(job: Callable[[], object]) -> Run:
    """Run a job; memory counts from what is resident when it starts."""
    return took(job, resident())


def say(run: Run) -> NoReturn:
    """Print what a fresh process took and end it; what a library does at its exit is no part of it."""
    print(json.dumps(asdict(run)), flush=True)
    os._exit(0)


def serve(jobs: Mapping[str, Prepare], name: str, folder: Path) -> NoReturn:
    """Be the fresh process: import what the job needs, run it, print what it took."""
    job = jobs[name]()
    say(took(partial(job, folder), resident_peak()))


def run(script: Path, name: str, folder: Path, extra: Sequence[str] = ()) -> Run | str:
    """Run one job of a script in a fresh process; give what it took, or why it failed."""
    command = [sys.executable, str(script), "--job", name, "--folder", str(folder), *extra]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return lines[-1][:100]
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def medians(names: Sequence[str], rounds: int, one: Callable[[str], Run | str]) -> dict[str, Run | str]:
    """Run all jobs in turn, `rounds` times; give each one's medians, or the first reason why it failed."""
    found: dict[str, list[Run]] = {name: [] for name in names}
    failed: dict[str, str] = {}
    for _ in range(rounds):
        for name in names:
            if name not in failed:
                result = one(name)
                if isinstance(result, str):
                    failed[name] = result
                else:
                    found[name].append(result)
    return {name: failed.get(name) or _median(runs) for name, runs in found.items()}


def _median(runs: Sequence[Run]) -> Run:
    times, used, peaks = zip(*(astuple(run) for run in runs), strict=True)
    return Run(median(times), median(used), int(median(peaks)))


def drop_cache(folder: Path) -> bool:
    """Ask the kernel to forget a folder's files; say whether it has such a call."""
    if not hasattr(os, "posix_fadvise"):
        return False
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    return True
