"""A rule file as values: what it is for, and its layouts with their rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from weightloom.engine.mapping.rule import Rule
from weightloom.rules.config_fields import Wanted
from weightloom.rules.problems import Mark


@dataclass(frozen=True, slots=True)
class Identifiers:
    """Names by which rules are looked up: `model_type`s of a config, class names of a model."""

    model_types: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[str]:
        yield from self.model_types
        yield from self.class_names


@dataclass(frozen=True, slots=True)
class SubModel:
    """A sub-model of the root class at a module path: of a class, of the type that a sub-config names, or both."""

    path: str
    class_name: str | None = None
    config: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """What `extends` names: a family, and a layout of it unless it is the one of the same name."""

    family: str
    layout: str | None
    at: Mark = field(compare=False, default=Mark(1, 1))

    def __str__(self) -> str:
        return self.family if self.layout is None else f"{self.family}/{self.layout}"


@dataclass(frozen=True, slots=True)
class Head:
    """All of a rule file but its layouts.

    `tree` None: as that of the file which it extends. `parts`: the class that a sub-config of a model type makes.
    """

    family: str
    applies_to: Identifiers = Identifiers()
    aliases: Identifiers = Identifiers()
    base_model_prefix: str | None = None
    tree: tuple[SubModel, ...] | None = None
    extends: Reference | None = None
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Every name by which the file's rules are found, aliases last."""
        return (*self.applies_to, *self.aliases)


@dataclass(frozen=True, slots=True)
class RuleItem:
    """One rule with the place of its item, and of each text in it."""

    rule: Rule
    at: Mark
    marks: Mapping[str, Mark]

    def mark_of(self, text: str) -> Mark:
        """Give where a text of the rule stands."""
        return self.marks.get(text, self.at)


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout of a family: the rules that lead from its names to the parameters.

    `config` are fields that its readers want in config.json, each with what it is in terms of the published one.
    """

    name: str
    items: tuple[RuleItem, ...]
    extends: Reference | None = None
    config: tuple[tuple[str, Wanted], ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules alone, in order."""
        return tuple(item.rule for item in self.items)


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A rule file, read. `file` is how errors call it."""

    file: str
    head: Head
    layouts: tuple[Layout, ...]

    def layout(self, name: str) -> Layout | None:
        """Give the layout of that name which is written in this file, or None."""
        return next((layout for layout in self.layouts if layout.name == name), None)
