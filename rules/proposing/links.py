"""Links: which tensors on disk make which parameters, and by which ops; what is not certain is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from weightloom.rules.proposing.templates import Index, Template


@dataclass(frozen=True)
class OpCall:
    """An op by its name, with its arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


@dataclass(frozen=True)
class Link:
    """Sources that make targets. `evidence` says why these; `doubts`, if any, what else it could be.

    `collected`: of a source the place among its stars that becomes an axis, -1 for none.
    """

    sources: tuple[Template, ...]
    targets: tuple[Template, ...]
    ops: tuple[OpCall, ...] = ()
    evidence: str = ""
    doubts: tuple[str, ...] = ()
    collected: int = -1

    __hash__ = None  # type: ignore[assignment]  # its ops hold mappings

    @property
    def plain(self) -> bool:
        """Whether the name alone changes, or not even that."""
        return not self.ops

    @property
    def same(self) -> bool:
        """Whether nothing changes."""
        return self.plain and self.sources[0].parts == self.targets[0].parts

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all its tensors on disk."""
        return tuple(source.name(index) for source in self.sources for index in source.shapes if self.takes(index))

    def takes(self, index: Index) -> bool:
        """Say whether the tensor at an index of its sources goes into a target: there may be more layers than that."""
        place = self.collected
        found = index if place < 0 else (*index[:place], *index[place + 1 :])
        return found in self.targets[0].shapes

    def doubting(self, doubt: str) -> Link:
        """Give it with a doubt more."""
        return self if doubt in self.doubts else replace(self, doubts=(*self.doubts, doubt))
