"""Run a script as several ranks on this machine, over MLX's ring of sockets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def run_ranks(folder: Path, command: Sequence[str], size: int = 2, timeout: float = 120) -> list[Ended]:
    """Run a command of the same interpreter once a rank; give what each one said."""
    hosts = folder / "hosts.json"
    hosts.write_text(json.dumps([[f"127.0.0.1:{port}"] for port in free_ports(size)]))
    ranks = [
        subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "MLX_RANK": str(rank), "MLX_HOSTFILE": str(hosts)},
        )
        for rank in range(size)
    ]
    try:
        said = [process.communicate(timeout=timeout) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    return [Ended(process.returncode, *each) for process, each in zip(ranks, said, strict=True)]


def free_ports(count: int) -> list[int]:
    """Give ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
