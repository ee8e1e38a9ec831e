"""The picture of what was opened and planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from weightloom.runtime.inspecting.reading import Planned
from weightloom.runtime.picture.drawing import draw
from weightloom.runtime.picture.picture import Picture

if TYPE_CHECKING:
    from weightloom.engine.spec import TensorSpec


def picture_of(found: Planned, path: str) -> Picture:
    """Draw a planned checkpoint, with what decided on its rules at the head."""
    choice = found.choice
    facts = {
        "decided by": choice.reason(),
        "layout": choice.layout,
        "rules": "\n".join(choice.files()) or "none",
        "target": str(found.target),
    }
    return draw(found.plan, path, facts=facts, wanted=_wanted(found), obstacle=found.target.obstacle)


def _wanted(found: Planned) -> Mapping[str, TensorSpec] | None:
    """Give the parameters in the order of the module that has them; None for an open target."""
    if found.target.module is None:
        return None
    from weightloom.plugins.modules.binding import param_specs

    return param_specs(found.target.module)
