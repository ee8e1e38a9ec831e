"""The source patterns of a rule as they were written, whatever its kind."""

from __future__ import annotations

from weightloom.engine.mapping.claims import Absent, Drop, KeepDtype, Tie
from weightloom.engine.mapping.drop_layers import DropLayers
from weightloom.engine.mapping.prefix import PrefixChange
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.mapping.rule import Rule


def source_texts(rule: Rule) -> tuple[str, ...]:
    """Give the source patterns of a rule as they were written."""
    if isinstance(rule, Tie):
        return (rule.parameter,)
    if isinstance(rule, DropLayers):
        return (rule.layers,)
    if isinstance(rule, PrefixChange):
        return ()
    return rule.source_patterns if isinstance(rule, Renaming | Drop | KeepDtype | Absent) else ()
