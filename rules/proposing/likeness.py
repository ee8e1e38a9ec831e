"""How alike the names of two templates are: by the words of their parts, each weighed by how much it tells apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log

from weightloom.rules.proposing.templates import STAR, Template
from weightloom.rules.proposing.words import meaning

Parts = tuple[str, ...]
Learnt = Mapping[str, tuple[str, ...]]
_CONTAINER = 0.5
# What the very same last part is worth beyond its words.
_NAMED = 0.15


class Likeness:
    """Compares sources with targets; `learnt` says of parts of sources what parts of targets they stand for."""

    def __init__(self, sources: Sequence[Template], targets: Sequence[Template], learnt: Learnt) -> None:
        self._learnt = learnt
        self._beside = (_parts(targets), _parts(sources))
        self._kept: dict[tuple[bool, Parts], dict[str, float]] = {}
        bags = [set(self._words(each.module, True)) for each in sources]
        bags += [set(self._words(each.module, False)) for each in targets]
        counts = Counter(word for bag in bags for word in bag)
        self._weights = {word: log(1 + len(bags) / count) for word, count in counts.items()}

    def of(self, source: Template, target: Template) -> float:
        """Give from 0 (nothing in common) to 1 (the same words)."""
        if source.parts == target.parts:
            return 1.0
        if source.end and target.end and source.end != target.end:
            return 0.0
        named = _NAMED if source.module[-1:] == target.module[-1:] else 0.0
        return min(1.0, self._alike(self._bag((source,), True), self._bag((target,), False)) + named)

    def own(self, source: Template, target: Template) -> bool:
        """Say whether the last parts of the modules have a word in common, or none at all."""
        one, other = self.words((source,), True), self.words((target,), False)
        return source.module[-1:] == target.module[-1:] or bool(set(one) & set(other))

    def of_many(self, sources: Sequence[Template], targets: Sequence[Template]) -> float:
        """Compare several with several by the words of all."""
        return self._alike(self._bag(sources, True), self._bag(targets, False))

    def words(self, templates: Sequence[Template], source: bool) -> tuple[str, ...]:
        """Give the words of templates' last parts."""
        return tuple(word for template in templates for word in self._words(template.module[-1:], source))

    def apart(self, template: Template, all_: Sequence[Template], source: bool) -> tuple[str, ...]:
        """Give the words of a template's parts that not all have."""
        shared = set[str].intersection(*(set(each.module) for each in all_))
        return tuple(self._words(tuple(part for part in template.module if part not in shared), source))

    def lists_agree(self, source: Template, target: Template) -> bool:
        """Say whether what stands before each number means the same on both sides."""
        before, after = _before_stars(source.parts), _before_stars(target.parts)
        pairs = zip(before, after, strict=False)
        return len(before) == len(after) and all(
            one == other or set(self._words((one,), True)) & set(self._words((other,), False)) for one, other in pairs
        )

    def _alike(self, one: Mapping[str, float], other: Mapping[str, float]) -> float:
        both = sum(min(one[word], other[word]) for word in one.keys() & other.keys())
        all_ = sum(one.values()) + sum(other.values())
        return 2 * both / all_ if all_ else 0.0

    def _bag(self, templates: Sequence[Template], source: bool) -> dict[str, float]:
        found: dict[str, float] = {}
        for template in templates:
            for word, weight in self._weighed(template.module, source).items():
                found[word] = max(found.get(word, 0.0), weight)
        return found

    def _weighed(self, module: Parts, source: bool) -> dict[str, float]:
        """Weigh the words: those of the module itself in full, those of what is around it less."""
        key = (source, module)
        if key not in self._kept:
            around = {word: _CONTAINER * self._weights.get(word, 1.0) for word in self._words(module[:-1], source)}
            own = {word: self._weights.get(word, 1.0) for word in self._words(module[-1:], source)}
            self._kept[key] = around | own
        return self._kept[key]

    def _words(self, module: Parts, source: bool) -> Iterator[str]:
        for part in module:
            known = self._learnt.get(part) if source else None
            if known is not None:
                yield from (word for each in known for word in meaning(each, self._beside[False]))
            elif part != STAR:
                yield from meaning(part, self._beside[source])


def _parts(templates: Iterable[Template]) -> frozenset[str]:
    return frozenset(part.lower() for template in templates for part in template.parts)


def _before_stars(parts: Parts) -> list[str]:
    return [parts[place - 1] if place else "" for place, part in enumerate(parts) if part == STAR]
