"""What packages offer to weightloom, of every kind, and what of it cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint

from weightloom.engine.errors import PluginError
from weightloom.plugins.discovery import format_manager, sources, vocabularies
from weightloom.plugins.discovery.manager import GROUP as ARCHITECTURES
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.discovery.registering import why_unusable
from weightloom.rules import op_table
from weightloom.rules import sources as rule_sources
from weightloom.rules.installed import distribution_of, installed_points

KINDS = {
    "architecture": ARCHITECTURES,
    "rules": rule_sources.GROUP,
    "op": op_table.GROUP,
    "format": format_manager.GROUP,
    "source": sources.GROUP,
    "tokenizer": vocabularies.GROUP,
}


@dataclass(frozen=True, slots=True)
class Offered:
    """What one object of a distribution offers: the kind, where it is, and the names of its entry points."""

    kind: str
    distribution: str
    value: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Installed:
    """All offers, by kind and distribution; problems and notes name theirs."""

    offers: tuple[Offered, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def installed() -> Installed:
    """List what is installed, and try each: it is imported, and its claims are held against those of the others."""
    offers = tuple(each for kind, group in KINDS.items() for each in _offers(kind, group))
    manager = PluginManager()
    clashes = sorted({*_clashes(manager)})
    unusable = (f"{each.offer.value} ({each.offer.distribution}): {each.why}" for each in manager.problems)
    return Installed(offers, (*unusable, *clashes, *_rules(), *_others()), tuple(manager.notes))


def _offers(kind: str, group: str) -> Iterator[Offered]:
    names: dict[tuple[str, str], list[str]] = {}
    for point in sorted(installed_points(group), key=lambda each: each.name):
        names.setdefault((distribution_of(point), point.value), []).append(point.name)
    yield from (Offered(kind, where, value, tuple(found)) for (where, value), found in sorted(names.items()))


def _clashes(manager: PluginManager) -> Iterator[str]:
    """Import every architecture; those that claim one model type are a clash unless the checkpoint settles it."""
    for model_type in manager.model_types():
        try:
            if len(manager.architectures(model_type)) > 1:
                manager.architecture(model_type)
        except PluginError as error:
            yield error.seen


def _rules() -> Iterator[str]:
    _, problems = rule_sources.offered_sources()
    yield from (error.seen for error in problems)


def _others() -> Iterator[str]:
    """Import every op, source, vocabulary and format."""
    for kind, wanted in (("op", "__call__"), ("source", "open"), ("tokenizer", "__call__")):
        for point in installed_points(KINDS[kind]):
            why = _unusable(point, wanted)
            if why is not None:
                yield f"{point.value} ({distribution_of(point)}): {why}"
    yield from format_manager.FormatManager().problems()


def _unusable(point: EntryPoint, wanted: str) -> str | None:
    try:
        found = point.load()
    # A stranger's code may raise anything, and must not take the list down.
    except (Exception, SystemExit) as error:
        return why_unusable(error)
    return None if hasattr(found, wanted) else f"it has no {wanted}"
