"""propose: from names and shapes on both sides to rules. Pure; reads no tensor, knows no architecture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weightloom.engine.spec import TensorSpec
from weightloom.rules.proposing.checking import unfit
from weightloom.rules.proposing.converting import converters_of
from weightloom.rules.proposing.doubting import doubted, remarks
from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.matching import matched
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
    left, wanted = _left(sources, links, True), _left(targets, links, False)
    return Proposal(rules, links, left, wanted, remarks(links, config), len(tensors))


def _written(links: Sequence[Link], sources: Sequence[Template]) -> tuple[tuple[ProposedRule, ...], tuple[Link, ...]]:
    """Write links as rules; gives the rules, and the links that could be written."""
    plain, ops = [link for link in links if link.plain], [link for link in links if not link.plain]
    renames, lost = renames_of(plain, sources)
    converters = converters_of(ops, renames, sources)
    return (*renames, *converters), tuple(link for link in links if link not in lost)


def _left(templates: Sequence[Template], links: Sequence[Link], of_sources: bool) -> tuple[Template, ...]:
    taken = {each for link in links for each in (link.sources if of_sources else link.targets)}
    return tuple(template for template in templates if template not in taken)
