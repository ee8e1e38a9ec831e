"""The rules from PEFT's factors of bare parameters, in which the ranks of all experts are one, to those of the stacks.

Format: huggingface/peft 0.21, `tuners/lora/layer.py`, `ParamWrapper`. In A (r * E, n) the rows of one expert lie
together; in B (m, r * E) the expert runs fastest, the rank slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from weightloom.engine import RuleSet, Transpose, Unflatten, WeightConverter, WeightRenaming
from weightloom.runtime.adapting.bare_parameter import Bare, is_stack


def bare_rules(found: Sequence[Bare]) -> RuleSet:
    """Give the rules from the names in the file to factors of the parameters, (E, r, columns) and (E, rows, r)."""
    rules: dict[WeightRenaming | WeightConverter, None] = {}
    for each in found:
        for factor in (each.a, each.b):
            renamed, unfolded = _unfolding(each, factor.kind)
            rules[WeightRenaming(f"^{re.escape(factor.name)}(?![\\w.])", renamed, always=False)] = None
            rules |= dict.fromkeys(unfolded)
    return RuleSet(rules)


def _unfolding(bare: Bare, kind: str) -> tuple[str, tuple[WeightConverter, ...]]:
    """Give the name that a factor gets, and the converter from there: none for a matrix, whose ranks are not folded."""
    of = {"A": "B", "B": "A"}[kind] if bare.turned else kind
    if not is_stack(bare.spec):
        return f"^lora_{of}.{bare.parameter}", ()
    prefix = f"folded_{kind}_to_{of}_{bare.experts}"
    source, target = rf"^{prefix}\.(.*)", rf"^lora_{of}.\1"
    return f"^{prefix}.{bare.parameter}", (WeightConverter(source, target, list(_ops(bare, kind)), always=False),)


def _ops(bare: Bare, kind: str) -> Iterator[Unflatten | Transpose]:
    if kind == "A":
        yield Unflatten(0, 1, (bare.experts, -1))
        if bare.turned:
            yield Transpose(1, 2)
    else:
        yield Unflatten(1, 2, (-1, bare.experts))
        yield Transpose(0, 2)
        if not bare.turned:
            yield Transpose(1, 2)
