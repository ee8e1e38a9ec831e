"""adapter_rules: a model's rules, for an adapter that was made for the model as it is published.

An adapter holds, for some of a model's tensors, two factors of a change of low rank: W + scale * B @ A. Each has the
name of its tensor, below `lora_A.` or `lora_B.`; tensors that replace the model's own are below `whole.`. So the
model's own patterns and scopes find them, and only ops have to be carried over: stacked experts are stacked in both
factors; of two joined ones the ranks add up, A joined and B block by block (or the other way round).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weightloom.engine.chain import Chain
from weightloom.engine.converter import WeightConverter
from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.ops.asserting import AssertDims
from weightloom.engine.ops.base import ConversionOp
from weightloom.engine.renaming import Renaming
from weightloom.engine.rule import Rule, Scope
from weightloom.engine.ruleset import RuleSet

A, B, WHOLE = "lora_A", "lora_B", "whole"
KINDS = (A, B, WHOLE)
_MATRIX = 2


def adapter_rules(rules: RuleSet | Sequence[Rule]) -> RuleSet:
    """Give the rules that map an adapter's names and factors as `rules` maps the model's names and tensors.

    Factors are of matrices: A is (rank, columns), B (rows, rank). A converter that cannot be carried over refuses the
    factors that it claims when they are planned, naming the op. Ties, drops and dtypes are the model's own business.
    """
    moved = [rule for rule in rules if isinstance(rule, Renaming)]
    return RuleSet(_placed(_carried(rule, kind), kind) for kind in KINDS for rule in moved)


@dataclass(frozen=True, slots=True)
class Refused(ConversionOp):
    """Stands for ops that cannot be carried over: it refuses whatever it meets, saying why."""

    why: str
    expected: str
    hint: str

    def lower(self, chain: Chain) -> None:
        """Raise PlanError."""
        raise PlanError(self.why, expected=self.expected, hint=self.hint, field="operations")


def _placed(rule: Renaming, kind: str) -> Renaming:
    return rule.replace(scope=(rule.scope or Scope("")).below(kind))


def _carried(rule: Renaming, kind: str) -> Renaming:
    if not isinstance(rule, WeightConverter) or kind == WHOLE:
        return rule
    try:
        return rule.replace(operations=(AssertDims(_MATRIX), *_on_factor(rule.operations, kind)))
    except (RuleError, PlanError) as error:
        return rule.replace(operations=(Refused(error.seen, error.expected or "", error.hint or ""),))


def _on_factor(ops: Sequence[ConversionOp], kind: str) -> Iterator[ConversionOp]:
    ndim = _MATRIX
    for op in ops:
        found = op.on_factors(ndim)
        yield from found.a if kind == A else found.b
        ndim = found.ndim
