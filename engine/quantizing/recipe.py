"""Recipes: rules by name for which modules are quantized, and how, and for dtypes of tensors; the first one counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.engine.errors import RuleError
from weightloom.engine.expressions import Expression
from weightloom.engine.mapping.rule import Place
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.show import listed
from weightloom.engine.surgery.glob import Glob


@dataclass(frozen=True, slots=True)
class ModuleRule:
    """Modules whose path one of the patterns matches, where `when` holds, are packed; `how` None keeps them dense.

    `when` is an expression over the config's fields, `layer` (the module's, from 0) and `layers` (how many there are).
    One that is `optional` may find no module.
    """

    patterns: tuple[Glob, ...]
    how: Quantization | None
    when: Expression | None = None
    optional: bool = False
    place: Place | None = None

    def takes(self, path: str, facts: Mapping[str, Any]) -> bool:
        """Say whether a module is meant; raises RuleError, with the place, for a `when` that cannot be worked out."""
        return any(glob.matches(path) for glob in self.patterns) and self._holds(path, facts)

    def _holds(self, path: str, facts: Mapping[str, Any]) -> bool:
        try:
            return self.when is None or bool(self.when.value(facts))
        except RuleError as error:
            file = None if self.place is None else str(self.place)
            raise RuleError(
                f"{error.seen}, for {path}", expected=error.expected, hint=error.hint, file=file, field="when"
            ) from error


@dataclass(frozen=True, slots=True)
class TensorRule:
    """Float parameters that one of the patterns matches have `dtype` (F32, F16, BF16); None keeps their own.

    One that is `optional` may find no parameter.
    """

    patterns: tuple[Glob, ...]
    dtype: str | None
    optional: bool = False
    place: Place | None = None

    def takes(self, name: str) -> bool:
        """Say whether a parameter is meant."""
        return any(glob.matches(name) for glob in self.patterns)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe by its name, or by its file."""

    name: str
    modules: tuple[ModuleRule, ...] = ()
    tensors: tuple[TensorRule, ...] = ()

    def chosen(self, shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> Chosen:
        """Choose among a model's matrices, by path; raises RuleError for a `when` that the config does not fit."""
        layers = _layer_counts(shapes)
        found = {path: self._rule(path, {**config, **_layer(path, layers)}) for path in shapes}
        wanted = {path: rule.how for path, rule in found.items() if rule is not None and rule.how is not None}
        modules = {path: how for path, how in wanted.items() if how.fits(shapes[path])}
        odd = {path: how for path, how in wanted.items() if path not in modules}
        used = {id(rule) for rule in found.values()}
        idle = tuple(rule for rule in self.modules if not rule.optional and id(rule) not in used)
        return Chosen(modules, odd, {path: shapes[path] for path in shapes if path not in wanted}, idle)

    def dtypes(self, names: Iterable[str]) -> dict[str, str | None]:
        """Give the dtypes of the parameters that it speaks of; None keeps the one in the file."""
        return {name: rule.dtype for name, rule in self._tensor_rules(names)}

    def idle_tensors(self, names: Iterable[str]) -> Iterator[str]:
        """Say which rules no parameter was left for."""
        used = {id(rule) for _, rule in self._tensor_rules(names)}
        yield from (_idle("parameter", rule) for rule in self.tensors if not rule.optional and id(rule) not in used)

    def _tensor_rules(self, names: Iterable[str]) -> Iterator[tuple[str, TensorRule]]:
        found = ((name, next((rule for rule in self.tensors if rule.takes(name)), None)) for name in names)
        yield from ((name, rule) for name, rule in found if rule is not None)

    def _rule(self, path: str, facts: Mapping[str, Any]) -> ModuleRule | None:
        return next((rule for rule in self.modules if rule.takes(path, facts)), None)


@dataclass(frozen=True)
class Chosen:
    """What a recipe makes of a model: modules to pack, those whose rows do not divide, those that stay dense by rule.

    `idle` are rules that no module was left for.
    """

    modules: Mapping[str, Quantization]
    odd: Mapping[str, Quantization]
    dense: Mapping[str, tuple[int, ...]]
    idle: tuple[ModuleRule, ...] = ()

    def notes(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[str]:
        """Say what stays dense though the recipe has a quantization for it, and what the recipe leaves dense."""
        for how in dict.fromkeys(self.odd.values()):
            paths = [path for path, own in self.odd.items() if own == how]
            wide = ", ".join(str(width) for width in sorted({shapes[path][-1] for path in paths}))
            yield f"kept dense: {listed(paths, 3)}: rows of {wide} do not divide into groups of {how.group_size}"
        if self.dense:
            yield f"kept dense by the recipe: {listed(self.dense, 3)}"
        yield from (_idle("module", rule) for rule in self.idle)


def _idle(what: str, rule: ModuleRule | TensorRule) -> str:
    patterns = ", ".join(glob.text for glob in rule.patterns)
    return f"no {what} for the rule {patterns}" + ("" if rule.place is None else f" ({rule.place})")


def usual(modules: Iterable[Quantization]) -> Quantization:
    """Give the quantization that most have; of several, the first by bits, group size and mode."""
    counts = Counter(modules)
    return min(counts, key=lambda how: (-counts[how], how.bits, how.group_size, how.mode))


def _split(path: str) -> tuple[str, int] | None:
    """Give what stands before the first number of a path, and that number."""
    before: list[str] = []
    for part in path.split("."):
        if part.isascii() and part.isdigit():
            return ".".join(before), int(part)
        before.append(part)
    return None


def _layer_counts(paths: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for found in map(_split, paths):
        if found is not None:
            counts[found[0]] = max(counts.get(found[0], 0), found[1] + 1)
    return counts


def _layer(path: str, counts: Mapping[str, int]) -> dict[str, int | None]:
    found = _split(path)
    return {"layer": None, "layers": None} if found is None else {"layer": found[1], "layers": counts[found[0]]}
