"""A progress bar on the error stream: bytes and rate, only where somebody watches."""

from __future__ import annotations

import shutil
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

    # Some terminals say that they have 0 columns and lines, and tqdm would believe them.
    columns, lines = shutil.get_terminal_size()
    ncols = min(columns, 100)
    with tqdm(desc=label, unit="B", unit_scale=True, file=sys.stderr, ncols=ncols, nrows=max(lines, 2)) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield advance
