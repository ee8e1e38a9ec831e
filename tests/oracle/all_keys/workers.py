"""Jobs in forked processes of their own, each with a time limit: a model that hangs or dies is an outcome too."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.oracle.all_keys.jobs import Job
from tests.oracle.all_keys.outcome import Outcome
from tests.oracle.all_keys.towers import import_torchvision

SECONDS = 90
_MEMORY = 10 << 30


@dataclass(frozen=True, slots=True)
class _Child:
    job: Job
    folder: tempfile.TemporaryDirectory[str]
    started: float

    @property
    def result(self) -> Path:
        return Path(self.folder.name) / "outcome.json"

    def outcome(self, status: int) -> Outcome:
        """Read what the child left; raises nothing."""
        try:
            found = json.loads(self.result.read_text())
        except (OSError, ValueError):
            spent = time.monotonic() - self.started
            return Outcome(str(self.job), "differs", (f"its process ended with {status} after {spent:.0f} s",))
        return Outcome(found["job"], found["kind"], tuple(found["reasons"]), tuple(found["notes"]))


def run(jobs: Sequence[Job], check: Callable[[Job, Path], Outcome], workers: int = 2) -> Iterator[Outcome]:
    """Yield an outcome for each job, as they end."""
    import torch

    import_torchvision()
    import transformers

    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    waiting, running = list(jobs), dict[int, _Child]()
    while waiting or running:
        while waiting and len(running) < workers:
            pid, child = _start(waiting.pop(0), check)
            running[pid] = child
        yield from _ended(running)
        time.sleep(0.02)


def _start(job: Job, check: Callable[[Job, Path], Outcome]) -> tuple[int, _Child]:
    child = _Child(job, tempfile.TemporaryDirectory(), time.monotonic())
    pid = os.fork()
    if pid:
        return pid, child
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        warnings.simplefilter("ignore")
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        work = Path(child.folder.name) / "work"
        work.mkdir()
        found = check(job, work)
        child.result.write_text(json.dumps(asdict(found)))
    finally:
        os._exit(0)


def _ended(running: dict[int, _Child]) -> Iterator[Outcome]:
    for pid, child in list(running.items()):
        if time.monotonic() - child.started > SECONDS:
            os.kill(pid, signal.SIGKILL)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            del running[pid]
            yield child.outcome(status)
            child.folder.cleanup()
