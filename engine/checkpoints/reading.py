"""What every byte source needs: a flat view of a buffer, and the error for a source that ends too early."""

from __future__ import annotations

from weightloom.engine.errors import CheckpointError


def byte_view(buffer: bytes | bytearray | memoryview) -> memoryview:
    """Give a contiguous buffer as flat bytes, sharing its memory."""
    view = memoryview(buffer)
    # A view with a zero in its shape cannot be cast.
    return view.cast("B") if view.nbytes else memoryview(b"")


def cut_short(name: str, wanted: int, offset: int, got: int) -> CheckpointError:
    """Give the error for `wanted` bytes at `offset` of which only `got` were there."""
    return CheckpointError(
        f"cut short while reading: wanted {wanted} bytes at offset {offset}, got {got}",
        expected="a file as long as it was when it was opened",
        hint="the file was changed or its copy is incomplete: get it again and open it again",
        file=name,
    )
