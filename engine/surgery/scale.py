"""The operations that take a tensor times a factor, and that add a donor's tensor times one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.surgery.donor import Donor
from weightloom.engine.surgery.fitting import donated
from weightloom.engine.surgery.names import Names
from weightloom.engine.surgery.operation import FLOATS, Edit, Operation
from weightloom.engine.surgery.steps import Added, Scaled


@dataclass(frozen=True)
class Scale(Operation):
    """Take tensors times `factor`. Of codes the scales, and biases, are taken times it: the values are the same."""

    op: ClassVar[str] = "scale"

    factor: float = 1.0

    def edits(self, names: Names) -> tuple[Edit, ...]:
        """Give a step a tensor; codes stay. Raises PlanError for integers, and for scales that are codes too."""
        found = self.matched(names)
        self.need_floats(names, [name for name in found if name not in names.companions])
        scaled = tuple(part for name in found for part in self._parts(names, name))
        return tuple(Edit(name, Scaled(0, self.factor, self.title)) for name in scaled)

    def _parts(self, names: Names, name: str) -> Iterator[str]:
        belongs = names.companions.get(name)
        if belongs is None:
            yield name
            return
        if not belongs.have_scales:
            raise self.refusal([name], "are codes without scales of groups", "codes with scales beside them")
        odd = [part for part in belongs.scales if names.specs[part].dtype not in FLOATS]
        if odd:
            kind = names.specs[odd[0]].dtype
            raise self.refusal(odd, f"are {kind} codes, and take no factor", f"scales of {', '.join(FLOATS)}")
        yield from belongs.scales


@dataclass(frozen=True)
class Add(Operation):
    """Add `alpha` times the donor's tensor of the same name and shape."""

    op: ClassVar[str] = "add"

    donor: Donor
    alpha: float = 1.0

    def edits(self, names: Names) -> tuple[Edit, ...]:
        """Give a step a tensor; raises PlanError for codes and integers, and for what the donor lacks."""
        found = self.matched(names)
        self.need_floats(names, found)
        taken = donated(self, names, {name: name for name in found}, self.donor, FLOATS)
        return tuple(Edit(name, Added(0, other, self.alpha, self.title)) for name, other in taken.items())
