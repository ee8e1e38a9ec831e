"""Finding plugins: entry points by model type, only what is needed imported, what is wrong reported.

Entry-point group `weightloom.plugins`; the entry point's name is the model type that it serves, its value is
`module` or `module:OBJECT`. One object may stand under many names. Our own architectures come in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import EntryPoint, EntryPoints

import pluggy

from weightloom.engine.errors import NotInvertible, PluginError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.discovery.registering import deprecations, forget, new_hooks, offered_by, why_unusable
from weightloom.plugins.judging.evidence import NOTHING_SEEN, Evidence
from weightloom.plugins.judging.fitting import fitting
from weightloom.plugins.judging.spelling import only_spelling, spellings
from weightloom.rules.installed import distribution_of, installed_points
from weightloom.rules.one_way import one_way_notes

GROUP = "weightloom.plugins"

# More names than this are counted, not listed.
_LISTED = 12


@dataclass(frozen=True, slots=True)
class Offer:
    """An entry point as it is installed: the model type, where it points, the distribution; not imported."""

    model_type: str
    value: str
    distribution: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A plugin that could not be used, and why; the others go on working."""

    offer: Offer
    why: str


@dataclass
class PluginManager:
    """What is installed, and what of it was imported so far. An instance holds its own pluggy manager.

    `problems` lists the plugins that cannot be used, `notes` what else there is to say of those that were imported:
    rules without a way back. With `strict` these are a problem too, and the plugin is not used.
    """

    group: str = GROUP
    strict: bool = False
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _offered: dict[str, tuple[Architecture, ...]] = field(default_factory=dict, repr=False)
    _hooks: pluggy.PluginManager = field(init=False, repr=False)
    _loaded: set[str] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        self._hooks = new_hooks()

    @cached_property
    def _points(self) -> EntryPoints:
        """What is installed, as it was when it was first asked for."""
        return installed_points(self.group)

    def register(self, plugin: object, name: str | None = None) -> None:
        """Use a plugin object without an entry point.

        Raises PluginError for a hook that does not exist or does not give architectures, NotInvertible, where
        the manager is strict, for rules without a way back.
        """
        self._register(plugin, name or type(plugin).__module__)

    def offers(self) -> tuple[Offer, ...]:
        """List all entry points, sorted by model type; imports none of them."""
        found = {_offer(point) for point in self._points}
        return tuple(sorted(found, key=lambda offer: (offer.model_type, offer.value)))

    def model_types(self) -> tuple[str, ...]:
        """List the model types that installed plugins serve."""
        return tuple(sorted({point.name for point in self._points}))

    def find(self, model_type: str) -> str | None:
        """Give the model type that is served under a name: the same, else the only one of another case or separator.

        Imports nothing. None where nothing serves it, or several differ from it so.
        """
        return only_spelling(model_type, self._served())

    def architectures(self, model_type: str) -> tuple[Architecture, ...]:
        """Give every architecture that serves a model type, as it is spelt; imports only the plugins that offer it."""
        for point in self._points.select(name=model_type):
            self._load(point)
        collected = (architecture for found in self._offered.values() for architecture in found)
        offered = [architecture for architecture in collected if model_type in architecture.model_types]
        return tuple(dict.fromkeys(offered))

    def near(self, model_type: str) -> str:
        """Ask, in words, whether one of the nearest served model types was meant; "" where none is near."""
        known = self.model_types()
        found = spellings(model_type, known) or get_close_matches(model_type, known, n=3, cutoff=0.5)
        return f"did you mean {' or '.join(found)}?" if found else ""

    def with_class(self, class_name: str) -> tuple[str, ...]:
        """Give the model types of the architectures that name a class among theirs, sorted, one for each.

        Those that name it first go before those that name it among others, as a family does whose configs say another's
        class. Imports every plugin: only an architecture itself says which classes it builds.
        """
        for point in self._points:
            self._load(point)
        collected = {architecture for found in self._offered.values() for architecture in found}
        own = {each.model_types[0] for each in collected if each.class_names[:1] == (class_name,)}
        return tuple(sorted(own or {each.model_types[0] for each in collected if class_name in each.class_names}))

    def architecture(
        self, model_type: str, chosen: str | None = None, evidence: Evidence | None = None
    ) -> Architecture:
        """Give the architecture for a model type, or the one with the name (or `source:name`) that was chosen.

        The type is one that `find` knows. Of several, the `evidence` of the checkpoint decides, and without any the one
        that needs none is taken; one that was chosen by
        its name does its own task, whatever the evidence says of that. Raises PluginError when there is none (naming
        the nearest, and plugins that failed), when the evidence is against all, or when several are left.
        """
        served = self.find(model_type) or model_type
        offered = self.architectures(served)
        if chosen is not None:
            offered = tuple(a for a in offered if chosen in (a.name, f"{a.source}:{a.name}", a.source))
        if evidence is not None and len(offered) == 1 and chosen not in (None, offered[0].source):
            evidence = evidence.asking(offered[0].task)
        if evidence is not None or len(offered) > 1:
            offered = fitting(served, offered, evidence or NOTHING_SEEN)
        if len(offered) == 1:
            return offered[0]
        raise self._clash(served, offered) if offered else self._unknown(served, chosen)

    def _served(self) -> set[str]:
        registered = {kind for found in self._offered.values() for each in found for kind in each.model_types}
        return registered.union(self.model_types())

    def _clash(self, model_type: str, offered: tuple[Architecture, ...]) -> PluginError:
        names = ", ".join(f"{architecture.source}:{architecture.name}" for architecture in offered)
        return PluginError(
            f"model type {model_type!r} is offered by {len(offered)} plugins: {names}",
            expected="one plugin for a model type",
            hint=f"choose one with --architecture {offered[0].source}:{offered[0].name}, or in config.json "
            f'("weightloom": {{"architecture": ...}})',
            field="model_type",
        )

    def _unknown(self, model_type: str, chosen: str | None) -> PluginError:
        known = self.model_types()
        values = {point.value for point in self._points.select(name=model_type)}
        failed = [problem for problem in self.problems if problem.offer.value in values]
        if failed:
            return PluginError(
                f"the plugin for model type {model_type!r} could not be used: {failed[0].why}",
                expected=f"a plugin that imports ({failed[0].offer.value} of {failed[0].offer.distribution})",
                hint="reinstall or update it",
                field="model_type",
            )
        if values and not self.architectures(model_type):
            return self._silent(model_type)
        guess = f"{self.near(model_type)} " if self.near(model_type) else ""
        named = f" under the name {chosen!r}" if chosen else ""
        there = [each.name for each in self.architectures(model_type)] or known
        return PluginError(
            f"no installed plugin serves model type {model_type!r}{named}",
            expected=_one_of(there),
            hint=f"{guess}install a package that offers it (entry-point group {self.group}, name {model_type})",
            field="model_type",
        )

    def _silent(self, model_type: str) -> PluginError:
        """Give the error for a model type whose plugins offer architectures for others alone."""
        offers = [_offer(point) for point in self._points.select(name=model_type)]
        names = [f"{offer.distribution} {offer.value}" for offer in offers]
        others = sorted({each for name in names for found in self._offered.get(name, ()) for each in found.model_types})
        return PluginError(
            f"{', '.join(names)} is registered for model type {model_type!r} and offers architectures for "
            f"{', '.join(map(repr, others))}",
            expected=f"an architecture with {model_type!r} among its model_types",
            hint="correct the name of its entry point, or model_types",
            field="model_type",
        )

    def _load(self, point: EntryPoint) -> None:
        offer = _offer(point)
        if offer.value in self._loaded:
            return
        self._loaded.add(offer.value)
        try:
            self._register(point.load(), f"{offer.distribution} {offer.value}")
        # A stranger's code may raise anything, and must not take the others down.
        except (Exception, SystemExit) as error:
            self.problems.append(Problem(offer, why_unusable(error)))

    def _register(self, plugin: object, name: str) -> None:
        if self._hooks.is_registered(plugin):
            return
        offered = offered_by(self._hooks, plugin, name, "weightloom_architectures")
        try:
            found = tuple(self._checked(offered, name))
        except BaseException:
            forget(self._hooks, plugin)
            raise
        self._offered[name] = found
        self.notes += deprecations(plugin, name)
        self.notes += [note for architecture in found for note in self._one_way(architecture)]

    def _checked(self, offered: Iterable[object], name: str) -> Iterator[Architecture]:
        for architecture in offered:
            if not isinstance(architecture, Architecture):
                raise PluginError(f"plugin {name} offers {architecture!r}", expected="architectures")
            if self.strict:
                self._refuse_one_way(architecture)
            yield architecture.from_source(name.partition(" ")[0])
        if not offered:
            raise PluginError(
                f"plugin {name} offers no architecture",
                expected="an object with the hook weightloom_architectures, marked with hookimpl",
            )

    def _refuse_one_way(self, architecture: Architecture) -> None:
        notes = one_way_notes(architecture.rules)
        if notes:
            raise NotInvertible(
                f"the rules of {architecture.name} are {notes[0]}",
                expected="rules whose every op has an inverse",
                hint="define `inverse` on the op, or use a manager that is not strict",
                field=architecture.name,
            )

    def _one_way(self, architecture: Architecture) -> Iterator[str]:
        yield from (f"{architecture.name}: {note}" for note in one_way_notes(architecture.rules))


def _one_of(names: Sequence[str]) -> str:
    """Say what there is: by name, or how many where they would fill a page."""
    if len(names) > _LISTED:
        return f"one of the {len(names)} model types that are served (`weightloom arch` lists them)"
    return f"one of {', '.join(names) or '(no plugin is installed)'}"


def _offer(point: EntryPoint) -> Offer:
    return Offer(point.name, point.value, distribution_of(point))
