"""Rules by identifier: model types and class names lead to rule files, or to rules registered by hand."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from weightloom.engine.errors import RuleError, UsageError, WeightloomError
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.rules.config_fields import Wanted
from weightloom.rules.document import RuleFile, SubModel
from weightloom.rules.extending import ancestors, base_model_prefix, layout_config, layout_names, layout_rules
from weightloom.rules.one_way import warn_of_one_way
from weightloom.rules.op_table import Ops, default_ops
from weightloom.rules.parse import parse_rules, read_bytes
from weightloom.rules.plain import plain
from weightloom.rules.problems import did_you_mean
from weightloom.rules.shelf import Offer, Shelf
from weightloom.rules.sources import RuleSource, offered_sources, shipped_sources

DEFAULT_LAYOUT = "hf"


class Registry:
    """Finds rules. An instance is a lookup: `registry("LlavaModel")` gives a RuleSet or None.

    Files are listed at the first look-up. A head is read if it may name what is asked for, a rule file when it is what
    is asked for; each once.
    Without `files` it knows those that ship and those that installed packages offer.
    """

    def __init__(self, files: Iterable[str | Path] | None = None, ops: Ops = default_ops) -> None:
        self.ops = ops
        self._given = None if files is None else tuple(RuleSource(Path(file), str(file)) for file in files)
        self._registered: dict[str, RuleSet] = {}
        self._parsed: dict[Path, RuleFile] = {}

    def __call__(self, identifier: str) -> RuleSet | None:
        """Give the rules of layout `hf` for a model type or class name, or None where there are none.

        Raises RuleError when two files claim the identifier, or the one that does is wrong.
        """
        registered = self._registered.get(identifier)
        if registered is not None:
            return registered
        offer = self._offer(identifier)
        if offer is None:
            return None
        file = self._file(offer)
        return self._rules(file, DEFAULT_LAYOUT) if DEFAULT_LAYOUT in layout_names(file, self.family) else None

    def register(
        self, identifier: str, rules: RuleSet | Iterable[Rule], overwrite: bool = False, *, strict: bool = False
    ) -> None:
        """Let an identifier lead to these rules; raises RuleError when it leads to others already.

        Rules without a way back are warned of at once (LoadOnlyWarning); with `strict` they are refused, by
        NotInvertible.
        """
        taken_by = "rules registered before" if identifier in self._registered else self._owner(identifier)
        if taken_by and not overwrite:
            raise RuleError(
                f"{identifier!r} is taken by {taken_by}",
                expected="an identifier without rules",
                hint="pass overwrite=True to put these rules in their place",
                field="identifier",
            )
        found = rules if isinstance(rules, RuleSet) else RuleSet(rules)
        warn_of_one_way(identifier, found, strict)
        self._registered[identifier] = found

    def registered(self, identifier: str) -> RuleSet | None:
        """Give what was registered by `register`, or None; rules from files do not count."""
        return self._registered.get(identifier)

    def rules(self, identifier: str, layout: str = DEFAULT_LAYOUT) -> RuleSet:
        """Give the rules of a layout for an identifier or a family.

        Raises UsageError for an unknown name or layout, naming the nearest known ones.
        """
        registered = self._registered.get(identifier)
        if registered is not None and layout == DEFAULT_LAYOUT:
            return registered
        return self._rules(self.file(identifier), layout)

    def brought(self, identifier: str) -> bool:
        """Say whether the rules of an identifier were registered, or come with another package."""
        offers = self._offers(identifier)
        return identifier in self._registered or any(not offer.source.ships for offer in offers)

    def config_fields(self, identifier: str, layout: str) -> dict[str, Wanted]:
        """Give the fields that a layout's readers want in config.json, each in terms of the published one.

        Raises UsageError for an unknown name; a layout that is not there wants none.
        """
        file = self.file(identifier)
        return layout_config(file, layout, self.family) if layout in layout_names(file, self.family) else {}

    def file(self, identifier: str) -> RuleFile:
        """Give the parsed rule file of an identifier or a family; raises UsageError when there is none."""
        offer = self._offer(identifier)
        return self.family(identifier) if offer is None else self._file(offer)

    def family(self, family: str) -> RuleFile:
        """Give the parsed rule file of a family; raises UsageError when there is none."""
        offers = tuple(offer for offer in self._shelf.naming(family) if offer.head.family == family)
        if not offers:
            raise self._unknown(family)
        return self._file(_only(family, offers))

    def layouts(self, identifier: str) -> tuple[str, ...]:
        """Give the layouts that there are for an identifier or a family; raises UsageError for an unknown one."""
        if identifier in self._registered and self._offer(identifier) is None:
            return (DEFAULT_LAYOUT,)
        return layout_names(self.file(identifier), self.family)

    def identifiers(self) -> tuple[str, ...]:
        """Give every model type and class name that leads to rules, sorted."""
        named = (name for offer in self._shelf.all() for name in offer.head.identifiers)
        return tuple(sorted({*self._registered, *named}))

    def __contains__(self, identifier: object) -> bool:
        """Say whether a name, as it is spelt, leads to rules."""
        return isinstance(identifier, str) and (identifier in self._registered or bool(self._offers(identifier)))

    def find(self, name: str) -> str | None:
        """Give the identifier that a name is, else the only one that differs in case, `-` and `_` alone, or None."""
        if name in self:
            return name
        heads = (offer.head for offer in self._shelf.near(name))
        known = {*self._registered, *(each for head in heads for each in head.identifiers)}
        near = [each for each in known if plain(each) == plain(name)]
        return near[0] if len(near) == 1 else None

    def families(self) -> tuple[str, ...]:
        """Give the families that there are files for, sorted."""
        return tuple(sorted({offer.head.family for offer in self._shelf.all()}))

    def tree(self, identifier: str) -> tuple[SubModel, ...]:
        """Give how sub-models sit below the root class; empty where no file says so."""
        offer = self._offer(identifier)
        if offer is None:
            return ()
        trees = (file.head.tree for file in ancestors(self._file(offer), self.family))
        return next((tree for tree in trees if tree is not None), ())

    def part_class(self, model_type: str) -> str | None:
        """Give the class that a sub-config of a model type makes, or None where no file says so.

        Raises RuleError when two files do.
        """
        offers = tuple(offer for offer in self._shelf.naming(model_type) if model_type in offer.head.parts)
        return _only(model_type, offers).head.parts[model_type] if offers else None

    def base_model_prefix(self, identifier: str) -> str:
        """Give the attribute under which a head model holds its base model; "" where none is named."""
        if identifier in self._registered:
            return self._registered[identifier].base_model_prefix
        offer = self._offer(identifier)
        return "" if offer is None else base_model_prefix(self._file(offer), self.family)

    @property
    def problems(self) -> tuple[WeightloomError, ...]:
        """What went wrong while files were listed: a package that does not import, a head that cannot be read."""
        return (*self._listed[1], *self._shelf.problems)

    def _rules(self, file: RuleFile, layout: str) -> RuleSet:
        return layout_rules(file, layout, self.family)

    @cached_property
    def _listed(self) -> tuple[tuple[RuleSource, ...], tuple[WeightloomError, ...]]:
        if self._given is not None:
            return self._given, ()
        offered, problems = offered_sources()
        return (*shipped_sources(), *offered), problems

    @cached_property
    def _shelf(self) -> Shelf:
        return Shelf(self._listed[0])

    def _offers(self, identifier: str) -> tuple[Offer, ...]:
        return tuple(offer for offer in self._shelf.naming(identifier) if identifier in offer.head.identifiers)

    def _offer(self, identifier: str) -> Offer | None:
        offers = self._offers(identifier)
        return _only(identifier, offers) if offers else None

    def _owner(self, identifier: str) -> str | None:
        offers = self._offers(identifier)
        return offers[0].source.label if offers else None

    def _file(self, offer: Offer) -> RuleFile:
        path = offer.source.path
        if path not in self._parsed:
            self._parsed[path] = parse_rules(read_bytes(path), offer.source.label, self.ops)
        return self._parsed[path]

    def _unknown(self, name: str) -> UsageError:
        known = sorted({*self.identifiers(), *self.families()})
        unread = "; ".join(problem.seen for problem in self.problems)
        return UsageError(
            f"no rules for {name!r}" + (f" (not read: {unread})" if unread else ""),
            expected=f"a model type, class name, family or path of a rule file; there are {len(known)} names",
            hint=did_you_mean(name, known) or f"known families: {', '.join(self.families())}",
            field="rules",
        )


def _only(name: str, offers: tuple[Offer, ...]) -> Offer:
    first, *others = offers
    if others:
        raise RuleError(
            f"{name!r} is claimed by {' and by '.join(offer.source.label for offer in offers)}",
            expected="one rule file for each model type, class name and family",
            hint="remove one of them, or settle it with registry.register(..., overwrite=True)",
            file=others[0].source.label,
            field=name,
        )
    return first


registry = Registry()
