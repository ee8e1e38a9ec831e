"""propose: from names and shapes on both sides to rules. Pure; reads no tensor, knows no architecture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weightloom.engine.spec import TensorSpec
from weightloom.rules.proposing.checking import unfit
from weightloom.rules.proposing.converting import converters_of
from weightloom.rules.proposing.doubting import doubted, remarks
from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.matching import matched
from weightloom.rules.proposing.pairing import could_be
from weightloom.rules.proposing.proposal import Proposal, ProposedRule
from weightloom.rules.proposing.renaming import renames_of
from weightloom.rules.proposing.templates import Template, templates_of

_TRIES = 4


def propose(
    tensors: Mapping[str, TensorSpec],
    parameters: Mapping[str, TensorSpec],
    config: Mapping[str, Any],
    known: Mapping[str, str] | None = None,
) -> Proposal:
    """Propose the rules by which tensors on disk become parameters; what is not certain is marked.

    `known`: what is known to be otherwise with parameters in other layouts, by their names, in words.
    """
    sources, targets = templates_of(tensors), templates_of(parameters)
    links = doubted(matched(sources, targets), config, known or {})
    rules = tuple[ProposedRule, ...]()
    for _ in range(_TRIES):
        rules, links = _written(links, sources)
        lost = unfit(links, rules, tensors, parameters, config)
        if not lost:
            break
        links = tuple(link for link in links if link not in lost)
    beyond = tuple(_beyond(links))
    left, wanted = (*_left(sources, links), *beyond), _wanted(targets, links)
    candidates = {each.text: tuple(found.text for found in could_be(each, wanted)) for each in left}
    return Proposal(rules, links, left, wanted, candidates, remarks(links, beyond), len(tensors))


def _written(links: Sequence[Link], sources: Sequence[Template]) -> tuple[tuple[ProposedRule, ...], tuple[Link, ...]]:
    """Write links as rules; gives the rules, and the links that could be written."""
    plain, ops = [link for link in links if link.plain], [link for link in links if not link.plain]
    renames, lost = renames_of(plain, sources)
    converters = converters_of(ops, renames, sources)
    return (*renames, *converters), tuple(link for link in links if link not in lost)


def _left(sources: Sequence[Template], links: Sequence[Link]) -> tuple[Template, ...]:
    taken = {source for link in links for source in link.sources}
    return tuple(source for source in sources if source not in taken)


def _beyond(links: Sequence[Link]) -> Iterator[Template]:
    """Give what sources have at indices at which there is no parameter."""
    for link in links:
        for source in link.sources:
            rest = {index: shape for index, shape in source.shapes.items() if not link.takes(index)}
            if rest:
                yield Template(source.parts, rest)


def _wanted(targets: Sequence[Template], links: Sequence[Link]) -> tuple[Template, ...]:
    made = {target for link in links for target in link.targets}
    return tuple(target for target in targets if target not in made)
