"""MemoryNeed: predicted bytes of a model, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weightloom.plugins.modules.cache_size import CacheSize
from weightloom.runtime.terminal.text import plural, size


@dataclass(frozen=True, slots=True)
class CacheNeed:
    """What the caches hold after a prompt of `context` tokens for each of `batch` sequences, by kind.

    `unknown` is why that is not known, None where it is.
    """

    context: int
    batch: int
    kinds: tuple[CacheSize, ...] = ()
    unknown: str | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all kinds."""
        return sum(kind.nbytes for kind in self.kinds)

    def lines(self) -> Iterator[str]:
        """Give it as text, a line a kind."""
        what = f"{plural(self.context, 'token')}{f' of {self.batch} sequences each' if self.batch > 1 else ''}"
        if self.unknown is not None:
            yield f"of the cache for {what} nothing is known: {self.unknown}"
            return
        yield f"{size(self.nbytes)} of cache for {what}"
        for kind in self.kinds:
            dtypes = ", ".join(kind.dtypes) or "empty"
            yield f"  {plural(kind.layers, 'layer')}, {kind.kind}, {dtypes}: {size(kind.nbytes)}"


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Predicted bytes: parameters as they are held, the scratch beside them while they are read, what caches hold.

    `peak` is the most that a load takes, `total` the most that a load and then a prompt of the context take; what a
    forward pass computes in between is not in it. `idle`, of the parameters, are those of towers, which are read when
    they are first used.
    """

    params: int
    scratch: int
    caches: int
    peak: int
    total: int
    cache: CacheNeed | None = None
    idle: int = 0

    def lines(self) -> Iterator[str]:
        """Give it as text, part by part."""
        yield f"{size(self.params)} of parameters, {size(self.peak)} at most while loading"
        if self.idle:
            yield f"{size(self.idle)} of them in towers, which are read when they are first used"
        if self.cache is not None:
            yield from self.cache.lines()
            yield f"{size(self.total)} in all"


def memory_need(params: int, scratch: int, cache: CacheNeed | None, idle: int = 0) -> MemoryNeed:
    """Add the parts up: the scratch is free again before there is a cache."""
    caches = 0 if cache is None else cache.nbytes
    return MemoryNeed(params, scratch, caches, params + scratch, max(params + scratch, params + caches), cache, idle)
