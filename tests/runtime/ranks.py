"""Run a script as several ranks on this machine, over MLX's ring of sockets."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import IO

SERVER = str(Path(__file__).with_name("rank_server.py"))
Rank = subprocess.Popen[str]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def run_ranks(folder: Path, command: Sequence[str], size: int = 2, timeout: float = 120) -> list[Ended]:
    """Run a command of the same interpreter once a rank; give what each one said."""
    ranks = _started(folder, command, size, subprocess.PIPE)
    try:
        said = [process.communicate(timeout=timeout) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    return [Ended(process.returncode, *each) for process, each in zip(ranks, said, strict=True)]


def ask_ranks(script: str, arguments: Sequence[str], size: int = 2, timeout: float = 120) -> list[Ended]:
    """Run a script in ranks that are kept, since what they import takes longer than what is tried.

    It must end on all of them, well or not. Where one does not, all are killed, and that is an error.
    """
    ranks = _kept(size)
    limit = Timer(timeout, lambda: [process.kill() for process in ranks])
    limit.start()
    try:
        for process in ranks:
            _pipe(process.stdin).write(json.dumps([script, list(arguments)]) + "\n")
            _pipe(process.stdin).flush()
        return [Ended(*json.loads(_pipe(process.stdout).readline())) for process in ranks]
    finally:
        limit.cancel()


@cache
def _kept(size: int) -> list[Rank]:
    with TemporaryDirectory() as folder:
        ranks = _started(Path(folder), [SERVER], size, subprocess.DEVNULL)
        # They join when the first script asks for it: by then each has read the file of hosts.
        for process in ranks:
            _pipe(process.stdin).write(json.dumps([str(Path(__file__).with_name("rank_joins.py")), []]) + "\n")
            _pipe(process.stdin).flush()
        assert [json.loads(_pipe(process.stdout).readline())[0] for process in ranks] == [0] * size
    atexit.register(_end, ranks)
    return ranks


def _end(ranks: list[Rank]) -> None:
    for process in ranks:
        process.kill()
        process.communicate()


def _started(folder: Path, command: Sequence[str], size: int, errors: int) -> list[Rank]:
    hosts = folder / "hosts.json"
    hosts.write_text(json.dumps([[f"127.0.0.1:{port}"] for port in free_ports(size)]))
    return [
        subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "MLX_RANK": str(rank), "MLX_HOSTFILE": str(hosts)},
        )
        for rank in range(size)
    ]


def _pipe(found: IO[str] | None) -> IO[str]:
    assert found is not None
    return found


def free_ports(count: int) -> list[int]:
    """Give ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
