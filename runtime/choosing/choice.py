"""Which rules a checkpoint is read by, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weightloom.engine.errors import CheckpointError, UsageError
from weightloom.runtime.configs.config import Config
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT

if TYPE_CHECKING:
    from weightloom.engine.mapping.ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user says about the rules, and whose parameters they lead to; None where nothing was said.

    `open_target`: plan by the rules alone, whatever parameters an installed architecture has. `architecture` settles
    which, where several are installed; `text_only` asks for the text model of a checkpoint of several; `task` is what
    the model is to do.
    """

    rules: str | None = None
    layout: str | None = None
    model_type: str | None = None
    open_target: bool = False
    architecture: str | None = None
    text_only: bool | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """One name of an architecture, and where it was read: `field` of `origin`."""

    text: str
    field: str
    origin: str | None = None

    def __str__(self) -> str:
        return f"{self.field} {self.text!r}" + (f" in {self.origin}" if self.origin else "")


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision: `identifier` (None: no rules but the user's), the `name` that decided, the layout.

    `known` are the layouts that there are; `wish` is what the user said. `rules()` makes the list.
    """

    identifier: str | None
    name: Name | None
    layout: str
    known: tuple[str, ...]
    config: Config | None
    wish: Wish

    def reason(self) -> str:
        """Say in a line why these rules."""
        if self.identifier is None:
            known = "the rules" if self.name is None else f"no rules for {self.name}; only those"
            return f"{known} of {self.wish.rules}"
        renamed = "" if self.name is None or self.name.text == self.identifier else f" (known as {self.identifier!r})"
        return f"{self.name}{renamed}"

    def files(self) -> tuple[str, ...]:
        """Name the files that the rules are written in, in the order of the rules."""
        places = (rule.place for rule in self.rules())
        return tuple(dict.fromkeys(place.file for place in places if place is not None))

    def rules(self) -> RuleSet:
        """Give the rules in order: the user's, the root's, sub-models', legacy names."""
        return self.rules_in(self.layout)

    def rules_in(self, layout: str) -> RuleSet:
        """Give the same in another layout. Raises UsageError when the architecture has no such layout."""
        from weightloom.runtime.choosing.resolution import resolved_rules

        if self.identifier is not None and layout not in self.known and self.wish.rules is None:
            raise _no_layout(layout, self.identifier, self.known)
        return resolved_rules(self, layout)


def choose(config: Config | None, wish: Wish, place: str) -> Choice:
    """Decide as `find_choice` does. Raises CheckpointError when nothing decides or nothing is known by the names.

    `place` is the checkpoint's path, for messages.
    """
    choice = find_choice(config, wish)
    if choice is None:
        raise undecided(config, wish, place)
    return choice


def find_choice(config: Config | None, wish: Wish) -> Choice | None:
    """Decide by what the user says, else the class in the config, else its model type; None where nothing does.

    A model type that no rule file knows may be a plugin's, which is looked for without importing it. Where there is
    none, plugins are imported to see which of them builds the class.

    Raises UsageError for a layout that is not there, CheckpointError for a config whose names are no names.
    """
    from weightloom.rules import registry

    names = tuple(_names(config, wish))
    for name in names:
        identifier = _in_rules(name, config, wish)
        if identifier is not None:
            known = tuple(registry.layouts(identifier))
            layout = wish.layout or (DEFAULT_LAYOUT if DEFAULT_LAYOUT in known else known[0])
            if layout not in known and wish.rules is None:
                raise _no_layout(layout, identifier, known)
            return Choice(identifier, name, layout, known, config, wish)
    offered = _offered(config, wish)
    if config is not None and offered is not None:
        name = Name(str(config.model_type), "model_type", str(config.path))
        return Choice(offered, name, wish.layout or DEFAULT_LAYOUT, (DEFAULT_LAYOUT,), config, wish)
    built = _of_class(config, wish)
    if config is not None and built is not None:
        known = tuple(registry.layouts(built)) if built in registry else (DEFAULT_LAYOUT,)
        return Choice(built, names[0], wish.layout or DEFAULT_LAYOUT, known, config, wish)
    if wish.rules is not None:
        return Choice(None, names[0] if names else None, wish.layout or DEFAULT_LAYOUT, (), config, wish)
    return None


def _in_rules(name: Name, config: Config | None, wish: Wish) -> str | None:
    """Give the identifier that rule files know a name by; None where they spell it otherwise, and a plugin differs."""
    from weightloom.rules import registry

    found = registry.find(name.text)
    if found is None or found == name.text:
        return found
    return found if _spelt_by_plugins(config, wish) in (None, found) else None


def _offered(config: Config | None, wish: Wish) -> str | None:
    """Give the config's model type as a plugin offers it that no rule file knows: the rules are the plugin's own then.

    None where the type is spelt as neither spells it, and rule files and plugins would differ.
    """
    from weightloom.rules import registry

    found = _spelt_by_plugins(config, wish)
    if config is None or config.model_type is None or found == config.model_type:
        return found
    return found if registry.find(config.model_type) in (None, found) else None


def _of_class(config: Config | None, wish: Wish) -> str | None:
    """Give the model type of the only architectures that build the config's class, where it says no model type."""
    from weightloom.plugins.discovery.manager import PluginManager

    if config is None or config.model_type is not None or config.class_name is None or wish.model_type is not None:
        return None
    found = PluginManager().with_class(config.class_name)
    return found[0] if len(found) == 1 else None


def _spelt_by_plugins(config: Config | None, wish: Wish) -> str | None:
    from weightloom.plugins.discovery.manager import PluginManager

    if config is None or config.model_type is None or wish.model_type is not None:
        return None
    return PluginManager().find(config.model_type)


def undecided(config: Config | None, wish: Wish, place: str) -> CheckpointError:
    """Give the error that says what was seen, what is known near it, and what to do."""
    from weightloom.plugins.discovery.manager import PluginManager
    from weightloom.rules import registry

    known = sorted({*registry.identifiers(), *PluginManager().model_types()})
    return _unknown(tuple(_names(config, wish)), place, known)


def only_shipped(choice: Choice) -> Choice:
    """Give the choice without the user's rules: how another layout of the same architecture is written."""
    return replace(choice, wish=replace(choice.wish, rules=None))


def _names(config: Config | None, wish: Wish) -> Iterator[Name]:
    if wish.model_type is not None:
        yield Name(wish.model_type, "--model-type")
        return
    if config is None:
        return
    if config.class_name is not None:
        yield Name(config.class_name, "architectures[0]", str(config.path))
    if config.model_type is not None:
        yield Name(config.model_type, "model_type", str(config.path))


def _unknown(names: Sequence[Name], place: str, identifiers: Sequence[str]) -> CheckpointError:
    if not names:
        return CheckpointError(
            "nothing says what model this is: there is no config.json, or it has neither architectures nor model_type",
            expected="a config.json with a model_type beside the weights",
            hint=f"say --model-type NAME (known: {_some(identifiers)}) or --rules FILE",
            file=place,
        )
    near = _nearest([name.text for name in names], identifiers)
    return CheckpointError(
        f"no rules for {', nor for '.join(map(str, names))}",
        expected=f"a known model type or class; nearest: {', '.join(near)}" if near else f"one of {_some(identifiers)}",
        hint="say --model-type NAME if it is a known one under another name, or --rules FILE (an empty list will do), "
        "or install a package that offers it (entry-point group weightloom.plugins)",
        file=names[0].origin or place,
        field=names[-1].field,
    )


def _nearest(texts: Sequence[str], identifiers: Sequence[str]) -> list[str]:
    from difflib import get_close_matches

    found = (near for text in texts for near in get_close_matches(text, identifiers, n=3, cutoff=0.5))
    return list(dict.fromkeys(found))[:5]


def _some(identifiers: Sequence[str]) -> str:
    shown = ", ".join(identifiers[:12])
    return shown if len(identifiers) <= 12 else f"{shown}, ... ({len(identifiers)} in all)"


def _no_layout(layout: str, identifier: str, known: Sequence[str]) -> UsageError:
    return UsageError(
        f"{identifier} has no layout {layout!r}",
        expected=f"one of {', '.join(known)}",
        hint=f"see `weightloom rules show {identifier}`",
        field="layout",
    )
