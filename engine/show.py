"""Values from a file, made short enough for a message whatever they are."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from itertools import islice
from reprlib import Repr

_SHORT = Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = _SHORT.maxother = 200
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 8


def shown(value: object) -> str:
    """Give a value's repr, cut where it is long or deep."""
    return _SHORT.repr(value)


def listed(names: Iterable[str], at_most: int = 8) -> str:
    """Join names with commas; those beyond `at_most` are counted, not named."""
    known = names if isinstance(names, Sized) else tuple(names)
    text = ", ".join(shown(name) for name in islice(iter(known), at_most))
    return text if len(known) <= at_most else f"{text} and {len(known) - at_most} more"
