"""Threads that are kept: used again, as many as there are calls at once, and no hindrance to the end of a process."""

from __future__ import annotations

import subprocess
import sys
from threading import Barrier, get_ident

import pytest

from weightloom.engine.kept_threads import on_kept_thread

# The main thread ends while one that MLX was used on waits: one in three such processes was aborted when it ended too.
SCRIPT = """
import mlx.core as mx
from weightloom.engine.kept_threads import on_kept_thread
print(on_kept_thread(lambda: mx.eval(mx.ones(3) + 1)).result())
"""


def test_a_thread_is_used_again() -> None:
    first = on_kept_thread(get_ident).result()
    assert first != get_ident()
    assert {on_kept_thread(get_ident).result() for _ in range(20)} == {first}


def test_calls_at_once_have_a_thread_each() -> None:
    barrier = Barrier(3)
    started = [on_kept_thread(lambda: barrier.wait(10)) for _ in range(3)]
    assert sorted(each.result(10) for each in started) == [0, 1, 2]


def test_what_a_call_raises_comes_out_and_the_thread_goes_on() -> None:
    with pytest.raises(ZeroDivisionError):
        on_kept_thread(lambda: 1 // 0).result()
    assert on_kept_thread(lambda: 1).result() == 1


def test_a_process_ends_well_while_they_wait() -> None:
    for _ in range(5):
        ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "None\n", "")
