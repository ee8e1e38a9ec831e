"""Proposal: rules as data, each with what speaks for it and what is left to decide, and what was left over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.templates import Template


@dataclass(frozen=True)
class ProposedRule:
    """One item of a layout's rule list, as data, and the links that it carries out.

    `own` are those that no narrower rule has a part in: what is in doubt with them is decided here.
    """

    item: Mapping[str, Any]
    links: tuple[Link, ...]
    own: tuple[Link, ...]

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    @property
    def doubts(self) -> tuple[str, ...]:
        """What else it could be, each once."""
        return tuple(dict.fromkeys(doubt for link in self.own for doubt in link.doubts))

    @property
    def evidence(self) -> tuple[str, ...]:
        """What speaks for it, each once."""
        return tuple(dict.fromkeys(link.evidence for link in self.links))


@dataclass(frozen=True)
class Proposal:
    """What is proposed. `links` has every match, also of names that need no rule.

    `left` are tensors for which no parameter was found, `wanted` parameters for which no tensor was; `candidates` are
    those of the wanted that one that is left could be by its shape, by its text. `remarks` are what headers cannot say
    of any tensor.
    """

    rules: tuple[ProposedRule, ...]
    links: tuple[Link, ...]
    left: tuple[Template, ...] = ()
    wanted: tuple[Template, ...] = ()
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    tensors: int = 0

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    @property
    def matched(self) -> int:
        """How many tensors lead to a parameter."""
        return sum(len(link.names) for link in self.links)

    @property
    def doubtful(self) -> tuple[Link, ...]:
        """The links with something left to decide."""
        return tuple(link for link in self.links if link.doubts)

    @property
    def settled(self) -> bool:
        """Whether nothing is left to decide, and every tensor and parameter has its place."""
        return not (self.doubtful or self.left or self.wanted)
