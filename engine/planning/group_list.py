"""The groups of a plan, those of tensors that go through as they are made when they are first looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import overload

from weightloom.engine.planning.groups import Group, unchanged
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.program import Program


@dataclass(frozen=True, eq=False)
class Groups(Sequence[Group]):
    """`made` groups and one for each of `passed` (target to source), sorted by their targets.

    Equal to another one, and to a tuple, of the same groups. `specs` are the sources', without a place on disk.
    """

    made: tuple[Group, ...]
    passed: Mapping[str, str] = field(default_factory=dict)
    specs: Mapping[str, TensorSpec] = field(default_factory=dict)

    @cached_property
    def _all(self) -> tuple[Group, ...]:
        programs: dict[int, Program] = {}
        groups = list(self.made)
        for target, name in self.passed.items():
            spec = self.specs[name]
            # Specs are shared: there are few, and each is hashed once.
            program = programs.get(id(spec)) or programs.setdefault(id(spec), unchanged(spec))
            groups.append(Group(None, (name,), (target,), program))
        return tuple(sorted(groups, key=attrgetter("targets")))

    def __iter__(self) -> Iterator[Group]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self.made) + len(self.passed)

    @overload
    def __getitem__(self, index: int) -> Group: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Group, ...]: ...
    def __getitem__(self, index: int | slice) -> Group | tuple[Group, ...]:
        return self._all[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Groups):
            return self._all == other._all
        return self._all == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._all)

    def __repr__(self) -> str:
        return repr(self._all)
