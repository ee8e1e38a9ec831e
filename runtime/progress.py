"""A progress bar on the error stream: bytes and rate, only where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]


@contextmanager
def progress_bar(label: str, quiet: bool) -> Iterator[Progress | None]:
    """Yield a callback (bytes done, bytes in all), or None where no bar is to be seen."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc=label, unit="B", unit_scale=True, file=sys.stderr, leave=True) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield advance
