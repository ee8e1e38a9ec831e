"""The operation that puts a donor's tensor in the place of another, with all that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.surgery.donor import Donor
from weightloom.engine.surgery.fitting import donated
from weightloom.engine.surgery.glob import Glob
from weightloom.engine.surgery.names import Names
from weightloom.engine.surgery.operation import Edit, Operation
from weightloom.engine.surgery.packed import Companions, companions
from weightloom.engine.surgery.steps import Replaced


@dataclass(frozen=True)
class Replace(Operation):
    """Take the donor's tensor under `key`, whose stars stand for what those of the pattern do, in order.

    Of codes, what says what they stand for is taken along: the donor must have exactly the same of it.
    """

    op: ClassVar[str] = "replace"

    donor: Donor
    key: Glob

    def edits(self, names: Names) -> tuple[Edit, ...]:
        """Give a step a tensor; raises PlanError where the donor lacks one, or has another dtype or shape."""
        packed = companions(self.donor.specs)
        keys: dict[str, str] = {}
        for name in self.matched(names):
            key = self.key.filled(self.pattern.captures(name) or ())
            keys |= {name: key, **self._beside(name, key, names, packed)}
        taken = donated(self, names, keys, self.donor, None)
        return tuple(Edit(name, Replaced(0, other, self.title)) for name, other in taken.items())

    def _beside(self, name: str, key: str, names: Names, packed: dict[str, Companions]) -> dict[str, str]:
        mine, theirs = _ends(name, names.companions.get(name)), _ends(key, packed.get(key))
        if mine.keys() != theirs.keys() and key in self.donor.specs:
            raise self.refusal(
                [name],
                f"have {', '.join(sorted(mine)) or 'nothing'} beside them, {key!r} of the donor {_said(theirs)}",
                "both quantized alike, or neither",
            )
        return {other: theirs[end] for end, other in mine.items() if end in theirs}


def _ends(name: str, found: Companions | None) -> dict[str, str]:
    """Give what belongs to a tensor by how its name goes on after what they share."""
    stem = name.removesuffix(".weight")
    return {} if found is None else {other.removeprefix(name).removeprefix(stem): other for other in found.names}


def _said(ends: dict[str, str]) -> str:
    return ", ".join(sorted(ends)) or "nothing"
