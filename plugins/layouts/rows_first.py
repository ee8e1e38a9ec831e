"""Stacks of experts that are published (expert, in, out), as (expert, out, in), which is how layers here have them.

Where a layout has rows first already, as mlx-lm's has them and as words of codes are in any, nothing is turned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.engine import BitView, ConversionOp, Flatten, Rule, RuleSet, WeightConverter, WeightRenaming
from weightloom.engine.ops.base import relabel_single
from weightloom.engine.ops.chain import Chain
from weightloom.engine.ops.cutting import Concatenate
from weightloom.engine.ops.permuting import Interleave

_STACKS = r"experts\.(gate_up|down)_proj"
_TARGET = re.compile(rf"{_STACKS}(_blocks)?$")
# What a longer name goes on with: scales and biases, or the weight in another layout.
_END = "(?![._])"
_CODES = ("U32", "U8")


@dataclass(frozen=True, slots=True)
class OutFirst(ConversionOp):
    """Swap the last two axes of floats; words of codes and their scales stay, for their rows come first already."""

    def lower(self, chain: Chain) -> None:
        """One permutation a tensor of floats."""
        for number, part in enumerate(chain.parts):
            for item, spec in enumerate(part.specs):
                if spec.dtype not in _CODES:
                    axes = range(len(spec.shape))
                    chain.permute(number, item, (*axes[:-2], axes[-1], axes[-2]))
        relabel_single(chain)

    def inverse(self) -> OutFirst:
        """A swap undoes itself."""
        return self


TURNED = WeightConverter(_STACKS + _END, r"experts.\1_proj", [OutFirst()], why="Rows first.")
BLOCKS = WeightConverter(
    rf"{_STACKS}_blocks",
    rf"experts.\1_proj{_END}",
    [Flatten(-2, -1, (-1, 16)), BitView("U8", "U32")],
    why="MLX's words of codes are published as blocks of 16 bytes.",
)


def rows_first(
    rules: RuleSet, config: Mapping[str, Any], otherwise: tuple[WeightConverter, ...] = (TURNED,)
) -> RuleSet:
    """Give rules of a layout, rewritten so that they lead to stacks with rows first: an architecture's `rewrite_rules`.

    Rules that make the published form of stacks from one with rows first no longer do; a layout that has none gets
    `otherwise`.
    """
    found = [_unturned(rule) for rule in rules]
    if not any(map(_makes_stacks, rules)):
        found.extend(otherwise)
    return RuleSet(found, rules.base_model_prefix)


def _makes_stacks(rule: Rule) -> bool:
    return isinstance(rule, WeightConverter) and any(map(_TARGET.search, rule.target_patterns))


def _unturned(rule: Rule) -> Rule:
    """Give a rule that makes a stack without what turns it, or makes bytes of its words."""
    if not isinstance(rule, WeightConverter) or not _makes_stacks(rule):
        return rule
    target = rule.target_patterns[0].removesuffix("_blocks")
    joined = tuple(op for op in rule.operations if isinstance(op, Concatenate | Interleave))
    if joined:
        return rule.replace(target_patterns=(target,), operations=joined)
    return WeightRenaming(rule.source_patterns, target + _END, when=rule.when, scope=rule.scope, why=rule.why)
