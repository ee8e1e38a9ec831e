"""Views that are whole tensors, one behind the other."""

from __future__ import annotations

from math import prod

from weightloom.engine.views.moves import Specs
from weightloom.engine.views.view import View
from weightloom.engine.views.windows import Loop, windows


def whole_slots(view: View, specs: Specs) -> tuple[int, ...] | None:
    """Give the slots, of these specs, whose elements in their own order make up the view; None for another view."""
    found: list[int] = []
    start = 0
    for window in sorted(windows(view), key=lambda window: window.target):
        size = prod(specs[window.slot].shape)
        if (window.source, window.target, window.loops) != (0, start, (Loop(size, 1, 1),)):
            return None
        found.append(window.slot)
        start += size
    return tuple(found) if found else None
