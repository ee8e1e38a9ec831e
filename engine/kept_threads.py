"""Threads that MLX is used on beside the main one: started when needed, used again, never ended.

MLX starts a thread of its own for each that computes with it, and never ends it: a thread a load would leave ever more
behind. And where a thread that MLX was used on ends while the process does, MLX's own cleaning up runs twice at once,
and aborts the process. A daemon that waits for work when the process ends is neither.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")
_Inbox = SimpleQueue[tuple[Future[Any], Callable[[], Any]]]

_idle: list[_Inbox] = []
_lock = Lock()


def on_kept_thread(call: Callable[[], T]) -> Future[T]:
    """Run a call on a thread that no other call is on; gives what will hold its result, or what it raised."""
    future: Future[T] = Future()
    with _lock:
        inbox = _idle.pop() if _idle else _started()
    inbox.put((future, call))
    return future


def _started() -> _Inbox:
    inbox: _Inbox = SimpleQueue()
    Thread(target=_work, args=(inbox,), name="weightloom-mlx", daemon=True).start()
    return inbox


def _work(inbox: _Inbox) -> None:
    while True:
        _answer(inbox, *inbox.get())


def _answer(inbox: _Inbox, future: Future[Any], call: Callable[[], Any]) -> None:
    """Run one call; a function of its own, so that nothing of it is held while the next is waited for.

    The thread is free before its answer is there: a caller that has it and asks again gets the same thread.
    """
    try:
        result = call()
    except BaseException as error:
        _free(inbox)
        future.set_exception(error)
    else:
        _free(inbox)
        future.set_result(result)


def _free(inbox: _Inbox) -> None:
    with _lock:
        _idle.append(inbox)
