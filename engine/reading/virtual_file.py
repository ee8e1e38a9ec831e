"""A file that is not there: MLX reads it, and each tensor is gathered straight into MLX's own memory.

`mx.load` takes any object with `seek`, `tell` and `readinto` and reads each tensor into memory that it allocated.
This object presents a safetensors file of the wanted layout: a header that describes the results, and a `readinto`
that gathers the pieces from the sources. So a transformed tensor is loaded in one pass, without a second copy.
MLX cannot take an exception out of `readinto` (the process would end), so the first one is kept and raised after.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING
from weakref import ref

from weightloom.engine.checkpoints.header import build_header
from weightloom.engine.kept_threads import on_kept_thread
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx

Fill = Callable[[int, memoryview], None]
_PATIENCE = 5.0


def load_arrays(specs: Sequence[TensorSpec], fill: Fill) -> list[mx.array]:
    """Make MLX arrays of these dtypes and shapes; `fill(i, buffer)` writes the bytes of the i-th.

    MLX runs on a thread of its own meanwhile: an interrupt is heard at once, and what is left is not read.
    """
    if not specs:
        return []
    file = VirtualFile(specs, fill)
    job = on_kept_thread(lambda: _read(file))
    try:
        arrays = job.result()
    except BaseException as error:
        file.stop(error)
        wait([job])
        raise
    file.raise_first()
    return [arrays[str(number)] for number in range(len(specs))]


def _read(file: VirtualFile) -> dict[str, mx.array]:
    import mlx.core as mx

    lent = _Lent(file)
    returned: SimpleQueue[object] = SimpleQueue()
    watch = ref(lent, returned.put)
    try:
        arrays = mx.load(lent, format="safetensors")  # type: ignore[arg-type]
    except Exception:
        file.raise_first()
        raise
    finally:
        # A thread of MLX that still holds an object of Python's while the interpreter ends aborts the process.
        del lent
        with suppress(Empty):
            returned.get(timeout=_PATIENCE)
        del watch
    assert isinstance(arrays, dict)
    return arrays


class _Lent:
    """The file as MLX holds it: gone when all threads have let go. No traceback keeps it alive."""

    def __init__(self, file: VirtualFile) -> None:
        self._file = file

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


class VirtualFile:
    """What `mx.load` reads from; serves one load."""

    closed = False

    def __init__(self, specs: Sequence[TensorSpec], fill: Fill) -> None:
        raw = build_header([(str(number), spec) for number, spec in enumerate(specs)], None)
        self._head = len(raw).to_bytes(8, "little") + raw
        self._starts = [len(self._head)]
        for spec in specs:
            self._starts.append(self._starts[-1] + spec.nbytes)
        self._fill = fill
        self._at = 0
        self._error: BaseException | None = None

    def stop(self, error: BaseException) -> None:
        """Read nothing more; what MLX still asks for stays as it is."""
        self._error = self._error or error

    def raise_first(self) -> None:
        """Raise what went wrong while MLX was reading."""
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                # Else error and frame would hold each other, and the arrays with them, until a collection.
                del error

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be sought in."""
        return True

    def writable(self) -> bool:
        """Say that it cannot be written."""
        return False

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move; as of an ordinary file."""
        self._at = offset + (0, self._at, self._starts[-1])[whence]
        return self._at

    def tell(self) -> int:
        """Give the position."""
        return self._at

    def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer from the position on."""
        out = memoryview(buffer).cast("B")
        start, self._at = self._at, self._at + len(out)
        try:
            if self._error is None:
                self._serve(start, out)
        except BaseException as error:
            self._error = error
        return len(out)

    def _serve(self, start: int, out: memoryview) -> None:
        while len(out):
            if start < len(self._head):
                piece = self._head[start : start + len(out)]
                out[: len(piece)] = piece
                done = len(piece)
            else:
                done = self._serve_tensor(start, out)
            start, out = start + done, out[done:]

    def _serve_tensor(self, start: int, out: memoryview) -> int:
        number = bisect_right(self._starts, start) - 1
        begin, end = self._starts[number], self._starts[number + 1]
        done = min(end - start, len(out))
        if start == begin and done == end - begin:
            self._fill(number, out[:done])
        else:
            whole = memoryview(bytearray(end - begin))
            self._fill(number, whole)
            out[:done] = whole[start - begin : start - begin + done]
        return done
