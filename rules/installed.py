"""What other packages offer by entry point, read once for a process as it is installed."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, EntryPoints, entry_points
from typing import cast

Places = tuple[tuple[str, int], ...]


def installed_points(group: str) -> EntryPoints:
    """Give the entry points of a group; imports none of them.

    Reading the metadata of every distribution costs more than all that is done with it, so it is read again only
    where the places that are searched have changed.
    """
    return _of_group(tuple((place, _changed(place)) for place in sys.path), group)


def distribution_of(point: EntryPoint) -> str:
    """Give the name of the distribution that an entry point comes with."""
    return _name(point.dist) if point.dist else "?"


@lru_cache(maxsize=1024)
def _name(distribution: Distribution) -> str:
    # The library reads and parses the file of metadata each time that it is asked.
    return distribution.name


@lru_cache(maxsize=16)
def _of_group(places: Places, group: str) -> EntryPoints:
    return _scanned(places).select(group=group)


@lru_cache(maxsize=1)
def _scanned(_: Places) -> EntryPoints:
    # Before Python 3.12 it is another class, which selects alike.
    return cast(EntryPoints, entry_points())


def _changed(place: str) -> int:
    try:
        return os.stat(place or os.curdir).st_mtime_ns
    except OSError:
        return 0
