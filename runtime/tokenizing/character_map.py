"""SentencePiece's compiled maps of characters, checked: the library that reads them trusts every number in them.

Format: the byte size of a double-array trie (uint32), the trie (uint32 units, as darts-clone writes them), then the
replacements, texts in UTF-8 that each end with a zero byte. A leaf of the trie is where a replacement begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Units = NDArray[np.int64]
_SIZE = 4
_BYTES = np.arange(1, 256)


class BadMap(ValueError):
    """The bytes are no such map; raised within a reader, which says whose bytes they are."""


def check_character_map(data: bytes) -> None:
    """Raise BadMap unless every step that the trie allows stays in it, and ends where a replacement begins."""
    size = int.from_bytes(data[:_SIZE], "little")
    if size == 0 or size % _SIZE or size > len(data) - _SIZE:
        raise BadMap(f"a trie of {size} bytes in {len(data)}")
    units = np.frombuffer(data, dtype="<u4", count=size // _SIZE, offset=_SIZE).astype(np.int64)
    texts = data[_SIZE + size :]
    texts.decode()
    begins = np.frombuffer(texts, dtype=np.uint8) & 0xC0 != 0x80
    seen = np.zeros(len(units), dtype=bool)
    bases = _offset(units[:1])
    while len(bases):
        _inside(bases | 0xFF, len(units))
        seen[bases] = True
        places = (bases[:, None] ^ _BYTES).ravel()
        steps = places[_label(units[places]) == np.tile(_BYTES, len(bases))]
        after = steps ^ _offset(units[steps])
        _inside(after | 0xFF, len(units))
        leaves = after[units[steps] >> 8 & 1 == 1]
        _begin(units[leaves] & 0x7FFFFFFF, begins)
        bases = np.unique(after[~seen[after]])


def _offset(units: _Units) -> _Units:
    return np.asarray((units >> 10) << ((units & 0x200) >> 6))


def _label(units: _Units) -> _Units:
    return np.asarray(units & 0x800000FF)


def _inside(places: _Units, count: int) -> None:
    if (places >= count).any():
        raise BadMap(f"a step to unit {int(places.max())} of {count}")


def _begin(values: _Units, begins: NDArray[np.bool_]) -> None:
    if (values >= len(begins)).any() or not begins[values].all():
        raise BadMap("a replacement that begins nowhere")
