"""Writing: a proposal as the text of a rule file, each thing that is left to decide as a comment above its rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from weightloom.rules.proposing.proposal import Proposal, ProposedRule
from weightloom.rules.proposing.quoting import commented, quoted
from weightloom.rules.proposing.templates import Template

_WIDTH = 110
# Of what a tensor could be by its shape, as many are named.
_FEW = 4
TO_DECIDE = "to decide"


def rule_text(proposal: Proposal, family: str, layout: str, model_types: Sequence[str], base: str) -> str:
    """Give the file's text; it passes the linter, and loads as it is."""
    return "\n".join(_lines(proposal, family, layout, model_types, base)) + "\n"


def _lines(proposal: Proposal, family: str, layout: str, model_types: Sequence[str], base: str) -> Iterator[str]:
    counts = f"{proposal.matched:,} of {proposal.tensors:,} tensors have a parameter"
    certain = "" if proposal.settled else " Rules that are not certain say what is to decide."
    yield from _comment(f"Proposed from names and shapes alone: {counts}.{certain}", 0)
    for remark in proposal.remarks:
        yield from _comment(f"Mind: {remark}.", 0)
    yield "schema: 1"
    yield f"family: {_value(family)}"
    yield f"applies_to: {{model_types: [{', '.join(map(_value, model_types))}]}}"
    if base:
        yield f"base_model_prefix: {_value(base)}"
    yield "layouts:"
    yield f"  {_value(layout)}:"
    yield "    rules:" if proposal.rules else "    rules: []"
    for rule in proposal.rules:
        yield from _rule(rule)
    yield from _unchanged(proposal)
    yield from _left("No parameter was found for these tensors", proposal.left, proposal.candidates)
    yield from _left("No tensor was found for these parameters", proposal.wanted, {})


def _rule(rule: ProposedRule) -> Iterator[str]:
    for doubt in rule.doubts:
        yield from _comment(f"{TO_DECIDE.capitalize()}: {doubt}.", 6)
    for kind, value in rule.item.items():
        if kind == "convert":
            yield f"      - {kind}:"
            yield from (f"          {key}: {_value(each)}" for key, each in value.items())
        else:
            yield f"      - {kind}: {_value(value)}"
    if rule.item.keys() & {"convert"}:
        yield f"        why: {quoted('; '.join(rule.evidence)[:400])}"


def _unchanged(proposal: Proposal) -> Iterator[str]:
    """Say what is to decide of names that no rule changes."""
    said: dict[str, list[str]] = {}
    for link in proposal.doubtful:
        for doubt in link.doubts if link.same else ():
            said.setdefault(doubt, []).append(link.sources[0].text)
    for doubt, names in said.items():
        yield from _comment(f"{TO_DECIDE.capitalize()}, though no rule changes them: {doubt}:", 6)
        yield from (f"      #   {commented(name)}" for name in names)


def _left(title: str, templates: Sequence[Template], candidates: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if templates:
        yield from _comment(f"{title}:", 6)
        for each in templates:
            fitting = candidates.get(each.text, ())
            yield f"      #   {commented(each.shown)}  {list(each.example)}{': could be' if fitting else ''}"
            yield from (f"      #     {text}" for text in fitting[:_FEW])


def _comment(text: str, indent: int) -> Iterator[str]:
    yield from (f"{' ' * indent}# {line}" for line in wrap(commented(text), _WIDTH - indent))


def _value(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value if value.isidentifier() and value.lower() not in _WORDS else quoted(value)


# Words that some readers of YAML take for something else than text.
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
