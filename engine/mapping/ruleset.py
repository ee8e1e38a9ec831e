"""RuleSet: an ordered list of rules, as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.ops.base import ConversionOp


@dataclass(frozen=True, init=False)
class RuleSet(Sequence[Rule]):
    """Rules in the order in which they act; immutable, hashable, `a + b` gives a new one.

    `base_model_prefix` is the attribute of a head model under which its base model sits ("model", "bert"): a
    checkpoint of either loads into either.
    """

    rules: tuple[Rule, ...]
    base_model_prefix: str

    def __init__(self, rules: Iterable[Rule] = (), base_model_prefix: str = "") -> None:
        found = tuple(rules)
        wrong = [rule for rule in found if not isinstance(rule, Rule)]
        if wrong:
            raise RuleError(f"{wrong[0]!r} is not a rule", expected="WeightRenaming, WeightConverter, ...")
        object.__setattr__(self, "rules", found)
        object.__setattr__(self, "base_model_prefix", base_model_prefix)

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> RuleSet: ...
    def __getitem__(self, index: int | slice) -> Rule | RuleSet:
        if isinstance(index, slice):
            return RuleSet(self.rules[index], self.base_model_prefix)
        return self.rules[index]

    def __add__(self, other: Iterable[Rule]) -> RuleSet:
        base = self.base_model_prefix or getattr(other, "base_model_prefix", "")
        return RuleSet((*self.rules, *other), base)

    def map_ops(self, fn: Callable[[ConversionOp], ConversionOp]) -> RuleSet:
        """Give a copy with each op of each converter replaced by `fn(op)`."""
        return self._map_converters(lambda rule: rule.replace(operations=tuple(map(fn, rule.operations))))

    def prepend_op(self, op: ConversionOp, where: Callable[[WeightConverter], bool] | None = None) -> RuleSet:
        """Give a copy with `op` put first in the converters that `where` picks (all by default)."""
        return self._map_converters(lambda rule: rule.replace(operations=(op, *rule.operations)), where)

    def append_op(self, op: ConversionOp, where: Callable[[WeightConverter], bool] | None = None) -> RuleSet:
        """Give a copy with `op` put last in the converters that `where` picks (all by default)."""
        return self._map_converters(lambda rule: rule.replace(operations=(*rule.operations, op)), where)

    def replace_all(self, **changes: Any) -> RuleSet:
        """Give a copy with the same fields changed on every rule."""
        return RuleSet((rule.replace(**changes) for rule in self.rules), self.base_model_prefix)

    def _map_converters(
        self,
        fn: Callable[[WeightConverter], WeightConverter],
        where: Callable[[WeightConverter], bool] | None = None,
    ) -> RuleSet:
        def changed(rule: Rule) -> Rule:
            chosen = isinstance(rule, WeightConverter) and (where is None or where(rule))
            return fn(rule) if chosen and isinstance(rule, WeightConverter) else rule

        return RuleSet(map(changed, self.rules), self.base_model_prefix)
