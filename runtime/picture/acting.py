"""The rules that act on a name, each once in the picture's list."""

from __future__ import annotations

from collections.abc import Iterator

from weightloom.engine.mapping.rule import Rule
from weightloom.engine.plan import Plan
from weightloom.engine.planning.describe import Step, explain
from weightloom.runtime.picture.picture import RuleText
from weightloom.runtime.picture.strands import Strand

_NOTHING = "as it is"


class Acting:
    """Finds the rules of names; `rules` are all that were found, in that order."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        known = plan.resolver.rules if plan.resolver is not None else ()
        self._by_title = {rule.title(): rule for rule in known}
        self._found: dict[RuleText, int] = {}

    @property
    def rules(self) -> tuple[RuleText, ...]:
        """The rules that were found so far."""
        return tuple(self._found)

    def on(self, name: str, strand: Strand) -> tuple[int, ...]:
        """Give the places of the rules that act on a tensor, first to last."""
        texts = dict.fromkeys(self._texts(name, strand))
        return tuple(self._found.setdefault(text, len(self._found)) for text in texts)

    def _texts(self, name: str, strand: Strand) -> Iterator[RuleText]:
        for step in explain(self._plan, name):
            if step.kind not in (_NOTHING, strand.kind):
                yield self._text(step, strand)
        if strand.rule is not None:
            yield self._titled(strand.kind, strand.rule)

    def _text(self, step: Step, strand: Strand) -> RuleText:
        own = strand.group.rule if strand.group else None
        if own is not None and own.title() == step.rule:
            return _of_rule(step.kind, own)
        return self._titled(step.kind, step.rule or step.kind)

    def _titled(self, kind: str, title: str) -> RuleText:
        rule = self._by_title.get(title)
        return RuleText(kind, title) if rule is None else _of_rule(kind, rule)


def _of_rule(kind: str, rule: Rule) -> RuleText:
    file, line = (rule.place.file, rule.place.line) if rule.place else (None, None)
    text = rule.replace(place=None).title()
    return RuleText(kind, text, file, line, rule.why)
