"""The names that an operation may speak of, with their specs and what is known of how they hang together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from weightloom.engine.spec import TensorSpec
from weightloom.engine.surgery.glob import MAX_LENGTH, MAX_STARS, Glob
from weightloom.engine.surgery.packed import Companions, companions, owners


@dataclass(frozen=True)
class Names:
    """Tensors by name; `shared` leads from a second name of a tensor to the first; `config` says sizes."""

    specs: Mapping[str, TensorSpec]
    shared: Mapping[str, str]
    config: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def companions(self) -> Mapping[str, Companions]:
        """What belongs to codes, by the name of the codes."""
        return companions(self.specs)

    @cached_property
    def owners(self) -> Mapping[str, str]:
        """The name of the codes, by that of each tensor that belongs to some."""
        return owners(self.companions.values())

    def hint(self, pattern: Glob) -> str | None:
        """Say which name is near, or that a star does not cross dots."""
        if len(pattern.stars) < MAX_STARS and len(pattern.text) < MAX_LENGTH // 2 and "**" not in pattern.text:
            longer = Glob("**." + pattern.text)
            if any(longer.matches(name) for name in self.specs):
                return f"a pattern is for the whole name: {longer.text!r} would match"
        near = get_close_matches(pattern.text, list(self.specs)[:20000], n=1)
        return f"did you mean {near[0]!r}?" if near else "* stays within a segment, ** goes across dots"
