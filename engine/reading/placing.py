"""Placing: elements from scratch to the target, both strided.

Where the one is contiguous along another axis than the other (a transpose), a plain copy misses the cache with every
element. There small blocks are copied twice: packed along the source's axis, then from the cache to their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Elements: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# Elements along the source's axis in a block: two cache lines of 16-bit elements, four of 32-bit ones.
_ALONG = 64
_BLOCK_BYTES = 64 << 10
# Blocks that are smaller would cost more calls than they save misses.
_FEWEST = 32


def place(target: Elements, source: Elements) -> None:
    """Copy `source` to `target`, of the same shape and dtype."""
    here, there = _contiguous_axis(source), _contiguous_axis(target)
    if here is None or there is None or here == there or min(source.shape[here], source.shape[there]) < _FEWEST:
        target[...] = source
        return
    import numpy as np

    ends = (-1, -2)
    to, of = np.moveaxis(target, (there, here), ends), np.moveaxis(source, (there, here), ends)
    for index in np.ndindex(of.shape[:-2]):
        _transpose(to[index], of[index])


def _contiguous_axis(array: Elements) -> int | None:
    steps = zip(array.strides, array.shape, strict=True)
    return next((axis for axis, (step, size) in enumerate(steps) if step == array.itemsize and size > 1), None)


def _transpose(target: Elements, source: Elements) -> None:
    """Copy a matrix: `source` is contiguous along its columns, `target` along its rows."""
    import numpy as np

    rows, columns = source.shape
    width = max(_BLOCK_BYTES // (_ALONG * source.itemsize), 1)
    for top in range(0, rows, _ALONG):
        for left in range(0, columns, width):
            block = (slice(top, top + _ALONG), slice(left, left + width))
            target[block] = np.ascontiguousarray(source[block].T).T
