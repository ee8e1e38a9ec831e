"""What all operations of surgery share: a pattern, a side of the plan, a place in a file, and what they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from weightloom.engine.errors import PlanError
from weightloom.engine.mapping.rule import Place
from weightloom.engine.show import listed
from weightloom.engine.spec import TensorSpec
from weightloom.engine.surgery.glob import Glob
from weightloom.engine.surgery.names import Names
from weightloom.engine.views.program import ValueStep

FLOATS = ("F16", "BF16", "F32")


class Side(Enum):
    """Which names an operation speaks of: the parameters', or those in the files."""

    PARAMETER = "parameter"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Edit:
    """A step for one tensor, its slot counted from that tensor; None where the tensor goes."""

    name: str
    step: ValueStep | None


@dataclass(frozen=True, slots=True)
class Change:
    """What an operation does to one tensor, for readers; `made` is what it becomes, None where it goes."""

    name: str
    operation: str
    place: str | None
    spec: TensorSpec
    made: TensorSpec | None
    side: str


@dataclass(frozen=True)
class Operation(ABC):
    """One operation; immutable. `edits` checks it against specs and gives its steps."""

    op: ClassVar[str]

    pattern: Glob
    side: Side = field(default=Side.PARAMETER, kw_only=True)
    place: Place | None = field(default=None, kw_only=True)

    @abstractmethod
    def edits(self, names: Names) -> tuple[Edit, ...]:
        """Give a step for each tensor that changes; raises PlanError, listing all that does not fit."""

    def renamed(self, names: Names) -> Mapping[str, str | None]:
        """Give the new names of parameters that get one, None for those that go; raises PlanError as `edits` does."""
        return {}

    def changed(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the config that goes with what is left; raises ConfigError for one that does not say enough."""
        return config

    @property
    def title(self) -> str:
        """Say what it is and where it was written."""
        place = f" ({self.place})" if self.place else ""
        return f"{self.op} {self.pattern.text!r}{place}"

    def matched(self, names: Names) -> tuple[str, ...]:
        """Give the tensors that it names, with codes for what belongs to them; raises PlanError for none."""
        found = tuple(name for name in names.specs if self.pattern.matches(name))
        alone = [name for name in found if name in names.owners and names.owners[name] not in found]
        if alone:
            raise self.refusal(
                alone,
                "belong to codes that are not matched",
                f"a pattern for {names.owners[alone[0]]!r}, scales and all",
            )
        shared = [each for each, other in names.shared.items() if self.pattern.matches(each) and other not in found]
        if shared:
            other = names.shared[shared[0]]
            raise self.refusal(shared, f"share the tensor of {other!r}", f"a pattern for {other!r}: both change then")
        if not found:
            raise PlanError(
                "the pattern matches no tensor",
                expected=f"one of {len(names.specs)} {self.side.value} names, such as {listed(sorted(names.specs), 3)}",
                hint=names.hint(self.pattern),
                file=None if self.place is None else str(self.place),
                rule=self.title,
                field="pattern",
            )
        return tuple(name for name in found if name not in names.owners)

    def refusal(self, tensors: Iterable[str], problem: str, expected: str, hint: str | None = None) -> PlanError:
        """Give the error that names all tensors that do not fit."""
        named = sorted(tensors)
        return PlanError(
            f"{self.title}: {listed(named)} {problem}",
            expected=expected,
            hint=hint,
            file=None if self.place is None else str(self.place),
            tensor=named[0],
            rule=self.title,
        )

    def need_floats(self, names: Names, found: Sequence[str]) -> None:
        """Raise PlanError for tensors that are no plain floats: codes, with what belongs to them, and integers."""
        codes = [name for name in found if name in names.companions]
        if codes:
            beside = listed(names.companions[codes[0]].names)
            raise self.refusal(
                codes,
                f"are codes ({beside} say for what)",
                "floats",
                f"dequantize them first; {self.op} changes values",
            )
        others = [name for name in found if names.specs[name].dtype not in FLOATS]
        if others:
            raise self.refusal(others, f"are {names.specs[others[0]].dtype}", f"one of {', '.join(FLOATS)}")
