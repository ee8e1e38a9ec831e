"""Registering a plugin: the version that it was written for, its hooks held against the specs, what it offers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import cast

import pluggy

from weightloom.engine.errors import PluginError, WeightloomError
from weightloom.plugins.specs import DEPRECATED, INTERFACE, PROJECT, Specs


def new_hooks() -> pluggy.PluginManager:
    """Give a place for plugins, with the specs of all hooks."""
    hooks = pluggy.PluginManager(PROJECT)
    hooks.add_hookspecs(Specs)
    return hooks


def offered_by(hooks: pluggy.PluginManager, plugin: object, name: str, hook: str) -> list[object]:
    """Register a plugin, and give all that it offers by one hook.

    Raises PluginError for a plugin of another interface, or with a hook or an argument that is not in the specs; it is
    not registered then. Warns of a hook that goes with the next interface.
    """
    _refuse_other_interface(plugin, name)
    try:
        hooks.register(plugin, name)
        hooks.check_pending()
        calls = [each for each in getattr(hooks.hook, hook).get_hookimpls() if each.plugin is plugin]
        for note in deprecations(plugin, name):
            warnings.warn(note, DeprecationWarning, stacklevel=2)
        return [one for each in calls for one in cast("Iterable[object]", each.function())]
    except pluggy.PluginValidationError as error:
        forget(hooks, plugin)
        known = ", ".join(each for each in vars(Specs) if not each.startswith("_"))
        raise PluginError(
            f"plugin {name}: {error}",
            expected=f"only these hooks: {known}",
            hint="correct the hook's name or arguments",
        ) from error
    except BaseException:
        forget(hooks, plugin)
        raise


def forget(hooks: pluggy.PluginManager, plugin: object) -> None:
    """Take a plugin out again, if it is there."""
    if hooks.is_registered(plugin):
        hooks.unregister(plugin)


def deprecations(plugin: object, name: str) -> Iterator[str]:
    """Say which of a plugin's hooks go with the next interface, and what to write instead."""
    for hook, instead in DEPRECATED.items():
        if hasattr(plugin, hook):
            yield f"plugin {name}: {hook} goes with plugin interface {INTERFACE + 1}; {instead}"


def why_unusable(error: BaseException) -> str:
    """Say in a line why a plugin cannot be used; a stranger's code may raise anything."""
    if isinstance(error, WeightloomError):
        return f"{error.seen}; expected {error.expected}" if error.expected else error.seen
    return f"{type(error).__name__}: {error}"


def _refuse_other_interface(plugin: object, name: str) -> None:
    wanted = getattr(plugin, "interface", 1)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= INTERFACE:
        raise PluginError(
            f"plugin {name} is written for plugin interface {wanted!r}",
            expected=f"a version from 1 to {INTERFACE}, which weightloom {version('weightloom')} has",
            hint="update weightloom, or install a version of the plugin for this one",
            field="interface",
        )
