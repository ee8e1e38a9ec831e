"""What all rules share: immutable values with a condition, a declared fidelity, a scope and a place in a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, get_args

from weightloom.engine.errors import NotInvertible, RuleError
from weightloom.engine.expressions import Condition, condition

Fidelity = Literal["exact", "keeps", "lossy"]
Patterns = str | Iterable[str]


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the model tree whose names a rule sees.

    `base.prefix.` is tried first, then `prefix.`; what was found is taken off before matching and put back
    after. With an empty `prefix`, names without `base.` are seen only if no name starts with it. `above` is what all
    names begin with, `base` too: it is no part of the tree, and tells tensors of one kind from those of another.
    """

    prefix: str
    base: str = ""
    above: str = ""

    def strip(self, name: str, takes_unprefixed: bool) -> tuple[str, str] | None:
        """Split a name into (what was taken off, what the rule sees), or None when it is outside."""
        own = _dotted(self.prefix)
        full, bare = _dotted(self.base or self.above) + own, _dotted(self.above) + own
        if name.startswith(full):
            return full, name[len(full) :]
        if name.startswith(bare) and (own or takes_unprefixed):
            return bare, name[len(bare) :]
        return None

    def below(self, above: str) -> Scope:
        """Give the same scope for names that all begin with `above.`."""
        return Scope(self.prefix, f"{above}.{self.base}" if self.base else "", above)

    def __str__(self) -> str:
        return ".".join(part for part in (self.base or self.above, self.prefix) if part)


def _dotted(part: str) -> str:
    return f"{part}." if part else ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rule was written: a line of a file, or, without one, what package's Python made it."""

    file: str
    line: int | None = None
    column: int | None = None

    @property
    def exact(self) -> str:
        """File, line and column, as editors read them; as text it is without the column."""
        return str(self) if self.column is None else f"{self}:{self.column}"

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Rule:
    """One step of a mapping. Immutable, hashable, compared by value; may be shared by threads.

    `when`: it acts only where this expression over config and metadata is true. `optional`: source patterns
    (or True for all) that a checkpoint may lack. `fidelity`: what it says of the way back; `why` is for readers.
    `always`: its inverse also acts when a model is saved that was never loaded. `origin`: the rule
    that this one is the inverse of, so that the inverse of the inverse is the rule as it was written.
    """

    kind: ClassVar[str] = "rule"

    when: Condition | None = field(default=None, kw_only=True)
    optional: bool | tuple[str, ...] = field(default=False, kw_only=True)
    fidelity: Fidelity = field(default="exact", kw_only=True)
    why: str = field(default="", kw_only=True)
    always: bool = field(default=True, kw_only=True)
    scope: Scope | None = field(default=None, kw_only=True)
    place: Place | None = field(default=None, kw_only=True, compare=False, repr=False)
    origin: Rule | None = field(default=None, kw_only=True, compare=False, repr=False)

    def replace(self, **changes: Any) -> Self:
        """Give a copy with some fields changed."""
        known = {f.name for f in dataclasses.fields(self) if f.init}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise RuleError(
                f"{type(self).__name__} has no field {unknown[0]!r}",
                expected=f"one of {', '.join(sorted(known))}",
                field=unknown[0],
            )
        return dataclasses.replace(self, **changes)

    def inverse(self) -> Rule:
        """Give the rule that undoes this one; raises NotInvertible."""
        raise NotInvertible(
            f"{type(self).__name__} has no inverse", expected="a rule that says how it is undone", rule=self.title()
        )

    def applies(self, config: Mapping[str, Any], metadata: Mapping[str, str]) -> bool:
        """Say whether `when` holds; a rule without it always applies."""
        return self.when is None or bool(self.when.value(config, metadata))

    def bound(self, config: Mapping[str, Any]) -> Rule:
        """Give the rule with what it takes from the config filled in; most take nothing."""
        return self

    def placed(self, error: RuleError) -> RuleError:
        """Give an error that came up as the rule acted, with the rule and where it is written."""
        return RuleError(
            error.seen,
            expected=error.expected,
            hint=error.hint,
            file=error.file or (self.place.exact if self.place else None),
            tensor=error.tensor,
            rule=self.title(),
            field=error.field,
        )

    def title(self) -> str:
        """Name the rule in one line, with its file and line if it has one."""
        place = f" ({self.place})" if self.place else ""
        scope = f" in scope {str(self.scope)!r}" if self.scope and str(self.scope) else ""
        return f"{self.summary()}{scope}{place}"

    def summary(self) -> str:
        """Say what it does in a few words."""
        return type(self).__name__

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _set_common(self, common: Mapping[str, Any]) -> None:
        """Fill the shared fields from keyword arguments, text conditions turned into expressions."""
        defaults = {f.name: f.default for f in dataclasses.fields(Rule)}
        unknown = sorted(set(common) - set(defaults))
        if unknown:
            raise TypeError(f"{type(self).__name__} got an unexpected keyword argument {unknown[0]!r}")
        values = {**defaults, "always": type(self)._always_by_default, **common}
        values["when"] = condition(values["when"])
        if not isinstance(values["optional"], bool):
            values["optional"] = patterns(values["optional"], "optional")
        if values["fidelity"] not in get_args(Fidelity):
            raise RuleError(f"fidelity {values['fidelity']!r}", expected="exact, keeps or lossy", field="fidelity")
        self._set(**values)

    _always_by_default: ClassVar[bool] = True


def patterns(value: Patterns, field_name: str) -> tuple[str, ...]:
    """Turn one pattern or several into a tuple; raises RuleError for anything else or for none."""
    found = (value,) if isinstance(value, str) else tuple(value)
    if not found or not all(isinstance(text, str) for text in found):
        raise RuleError(f"{field_name} is {value!r}", expected="a pattern or a list of patterns", field=field_name)
    return found
