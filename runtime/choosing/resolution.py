"""The rules of a choice as one list: the user's first, then what the walk through the model tree finds."""

from __future__ import annotations

from pathlib import Path

from weightloom.engine.errors import UsageError
from weightloom.engine.mapping.rule import Scope
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.mapping.scope import ModuleNode, scoped_rules
from weightloom.rules import load_rules, module_nodes, registry
from weightloom.runtime.choosing.choice import Choice
from weightloom.runtime.choosing.settled import settled_architecture
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT

# Outside all scopes: what the user says wins over what ships.
OUTERMOST = Scope("", "")


def resolved_rules(choice: Choice, layout: str) -> RuleSet:
    """Give the rules of a choice in one of its layouts, each with its scope."""
    own = (
        user_rules(choice.wish.rules, choice.wish.layout, layout in choice.known) if choice.wish.rules else RuleSet(())
    )
    base = registry.base_model_prefix(choice.identifier) if choice.identifier else own.base_model_prefix
    found = scoped_rules(nodes(choice), LayoutLookup(layout), base)
    return RuleSet((*own.replace_all(scope=OUTERMOST), *found, *_plugins_own(choice)), base)


def _plugins_own(choice: Choice) -> RuleSet:
    """Give the rules of the architecture where no rule file knows it; where one does, they lead on from the file's."""
    if choice.identifier is None or choice.identifier in registry:
        return RuleSet()
    from weightloom.plugins.discovery.manager import PluginManager
    from weightloom.runtime.extras import need_mlx

    need_mlx()
    asked = choice.wish.architecture
    chosen = asked if choice.config is None else settled_architecture(choice.config, asked)
    return PluginManager().architecture(choice.identifier, chosen).rules


def user_rules(file: str, layout: str | None, or_usual: bool = False) -> RuleSet:
    """Load a rule file in the layout asked for, `hf` where none is.

    `or_usual`: a file without that layout is taken in its usual one, for others know the layout.
    Raises UsageError for a layout that is not there, RuleError and StorageError as loading does.
    """
    wanted = layout or DEFAULT_LAYOUT
    try:
        return load_rules(Path(file), layout=wanted)
    except UsageError:
        if wanted == DEFAULT_LAYOUT or not or_usual:
            raise
        return load_rules(Path(file))


def nodes(choice: Choice) -> tuple[ModuleNode, ...]:
    """Give the model tree as far as it is known without the model: the root and its listed sub-models."""
    config = choice.config
    if choice.wish.model_type is not None or config is None:
        names: tuple[str, str | None] = (choice.identifier or "", choice.identifier)
    else:
        names = _as_known(choice, config.class_name, config.model_type)
    below = registry.tree(choice.identifier) if choice.identifier else ()
    return module_nodes(*names, below, config.values if config else {}, registry.part_class)


def _as_known(choice: Choice, class_name: str | None, model_type: str | None) -> tuple[str, str | None]:
    """Put the registry's spelling of the deciding name in its place."""
    decided = choice.name.text if choice.name else None
    found = [choice.identifier if name is not None and name == decided else name for name in (class_name, model_type)]
    return found[0] or "", found[1]


class LayoutLookup:
    """The registry, in one layout; what does not have it is asked for its usual one."""

    def __init__(self, layout: str) -> None:
        self._layout = layout

    def __call__(self, identifier: str) -> RuleSet | None:
        """Give the rules of an identifier, or None."""
        if identifier not in registry or self._layout not in registry.layouts(identifier):
            return registry(identifier)
        return registry.rules(identifier, self._layout)

    def registered(self, identifier: str) -> RuleSet | None:
        """Give the rules that were registered for an identifier or that another package brings, or None."""
        return self(identifier) if registry.brought(identifier) else None
