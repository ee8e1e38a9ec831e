"""adapter_rules: a model's rules, for an adapter that was made for the model as it is published.

An adapter holds, for some of a model's tensors, two factors of a change of low rank: W + scale * B @ A. Each has the
name of its tensor, below `lora_A.` or `lora_B.`; tensors that replace the model's own are below `whole.`. So the
model's own patterns and scopes find them, and only ops have to be carried over: stacked experts are stacked in both
factors; of two joined ones the ranks add up, A joined and B block by block (or the other way round).

Of a weight that is decomposed into lengths and directions (DoRA, arXiv 2402.09353) the lengths are below
`lora_magnitude.`, one a row, or below `lora_column_magnitude.`, one a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.renaming import Renaming
from weightloom.engine.mapping.rule import Rule, Scope
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.ops.base import ConversionOp, OnFactors
from weightloom.engine.ops.chain import Chain

A, B, WHOLE = "lora_A", "lora_B", "whole"
ROWS, COLUMNS = "lora_magnitude", "lora_column_magnitude"
KINDS = (A, B, ROWS, COLUMNS, WHOLE)
_LEAST_DIMS, _MOST_DIMS = 2, 8


def adapter_rules(rules: RuleSet | Sequence[Rule]) -> RuleSet:
    """Give the rules that map an adapter's names and factors as `rules` maps the model's names and tensors.

    A factor has as many dims as its tensor: A is (..., rank, columns), B (..., rows, rank). Magnitudes are (..., rows)
    or (..., columns). A converter that cannot be carried over refuses what it claims of these when they are planned,
    naming the op. Ties, drops and dtypes are the model's own business.
    """
    moved = [rule for rule in rules if isinstance(rule, Renaming)]
    return RuleSet(_placed(_carried(rule, kind), kind) for kind in KINDS for rule in moved)


def _placed(rule: Renaming, kind: str) -> Renaming:
    return rule.replace(scope=(rule.scope or Scope("")).below(kind))


def _carried(rule: Renaming, kind: str) -> Renaming:
    if not isinstance(rule, WeightConverter) or kind == WHOLE:
        return rule
    return rule.replace(operations=(OnFactor(rule.operations, kind),))


@dataclass(frozen=True, slots=True)
class OnFactor(ConversionOp):
    """Do to one factor of a change, or to its magnitudes, what `ops` do to the tensor that is changed."""

    needs_real_shapes: ClassVar[bool] = True

    ops: tuple[ConversionOp, ...]
    kind: str

    def lower(self, chain: Chain) -> None:
        """Lower what the ops are on this factor; raises PlanError, naming the op that cannot be carried over."""
        for op in _on_factor(self.ops, self.kind, _dims(chain, self.kind))[0]:
            op.lower(chain)

    def inverse(self) -> OffFactor:
        """Undo it on the factor."""
        return OffFactor(self.ops, self.kind)


@dataclass(frozen=True, slots=True)
class OffFactor(ConversionOp):
    """Undo on one factor, or on magnitudes, what `ops` did to it."""

    needs_real_shapes: ClassVar[bool] = True

    ops: tuple[ConversionOp, ...]
    kind: str

    def lower(self, chain: Chain) -> None:
        """Lower the inverses, last first; raises as the op does that it undoes."""
        for op in reversed(self._done(_dims(chain, self.kind))):
            op.inverse().lower(chain)

    def inverse(self) -> OnFactor:
        """Do it again."""
        return OnFactor(self.ops, self.kind)

    def _done(self, left: int) -> tuple[ConversionOp, ...]:
        """Give what was done to factors that have as many dims now."""
        why = PlanError(f"a factor with {left} dims", expected="one that these ops can have made", field="operations")
        for ndim in range(_LEAST_DIMS, _MOST_DIMS):
            try:
                done, after = _on_factor(self.ops, self.kind, ndim)
            except PlanError as error:
                why = error
                continue
            if after == left:
                return done
        raise why


def _dims(chain: Chain, kind: str) -> int:
    """Give how many dims the tensor has that is changed."""
    left_out = 1 if kind in (ROWS, COLUMNS) else 0
    found = {len(spec.shape) + left_out for part in chain.parts for spec in part.specs}
    if len(found) != 1 or min(found) < _LEAST_DIMS:
        shapes = ", ".join(str(list(spec.shape)) for part in chain.parts for spec in part.specs[:1])
        raise PlanError(f"factors of {shapes}", expected="two dims at least, and as many in all", field="operations")
    return found.pop()


def _on_factor(ops: Sequence[ConversionOp], kind: str, ndim: int) -> tuple[tuple[ConversionOp, ...], int]:
    """Give what the ops are on a factor with `ndim` dims, and how many they leave; raises PlanError."""
    done: tuple[ConversionOp, ...] = ()
    for op in ops:
        try:
            found = op.on_factors(ndim)
        except RuleError as error:
            raise PlanError(error.seen, expected=error.expected, hint=error.hint, field=error.field) from error
        done, ndim = (*done, *_of_kind(op, found, kind)), found.ndim
    return done, ndim


def _of_kind(op: ConversionOp, found: OnFactors, kind: str) -> tuple[ConversionOp, ...]:
    made = {A: found.a, B: found.b, ROWS: found.rows}.get(kind)
    if made is None:
        raise PlanError(
            f"{op} cannot be carried over to {kind}, the lengths of rows or columns",
            expected="an op that leaves rows whole, on lengths of rows",
            hint="add the change to the weights before they are converted",
            field="operations",
        )
    return made
