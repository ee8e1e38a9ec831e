"""Jobs in processes of their own, each with a time limit: a model that hangs or dies is an outcome too."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.oracle.all_keys.jobs import Job
from tests.oracle.all_keys.outcome import Outcome

SECONDS = 90
_MEMORY = 10 << 30
Check = Callable[[Job, Path], Outcome]


@dataclass(frozen=True, slots=True)
class _Child:
    job: Job
    process: ForkServerProcess
    folder: tempfile.TemporaryDirectory[str]
    started: float

    def outcome(self) -> Outcome:
        """Read what the child left; raises nothing."""
        try:
            found = json.loads(_result(self.folder.name).read_text())
        except (OSError, ValueError):
            spent, code = time.monotonic() - self.started, self.process.exitcode
            return Outcome(str(self.job), "differs", (f"its process ended with {code} after {spent:.0f} s",))
        return Outcome(found["job"], found["kind"], tuple(found["reasons"]), tuple(found["notes"]))


def run(jobs: Sequence[Job], check: Check, workers: int = 2) -> Iterator[Outcome]:
    """Yield an outcome for each job, as they end; `check` is pickled, as is the job."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.oracle.all_keys.preload"])
    waiting, running = list(jobs), list[_Child]()
    while waiting or running:
        while waiting and len(running) < workers:
            job, folder = waiting.pop(0), tempfile.TemporaryDirectory()
            process = context.Process(target=_work, args=(job, check, folder.name))
            process.start()
            running.append(_Child(job, process, folder, time.monotonic()))
        yield from _ended(running)
        time.sleep(0.02)


def _result(folder: str) -> Path:
    return Path(folder) / "outcome.json"


def _work(job: Job, check: Check, folder: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    work = Path(folder) / "work"
    work.mkdir()
    found = check(job, work)
    _result(folder).write_text(json.dumps(asdict(found)))
    # What a library does at its exit is no part of the job.
    os._exit(0)


def _ended(running: list[_Child]) -> Iterator[Outcome]:
    for child in list(running):
        if time.monotonic() - child.started > SECONDS:
            child.process.kill()
            child.process.join()
        if not child.process.is_alive():
            running.remove(child)
            yield child.outcome()
            child.folder.cleanup()
