"""Small expressions in rule data: `tie_word_embeddings`, `num_attention_heads * head_dim`, `metadata.format == 'mlx'`.

A rule file may come from anyone, so an expression is parsed once into Python's syntax tree, held to a short
list of node types, and interpreted here: nothing is ever evaluated by Python itself. Names are fields of the
config; a dotted name goes into nested ones, `field[0]` into a list; `metadata` is the checkpoint's own. A field that is
absent is None.
Texts are ordered as versions: `transformers_version < '5'` holds for '4.57.1' and not for '10.0'.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from itertools import pairwise
from typing import Any

from weightloom.engine.errors import RuleError
from weightloom.engine.versions import version_key

_MAX_LENGTH = 500
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: lambda a, b: operator.lt(*_ordered(a, b)),
    ast.LtE: lambda a, b: operator.le(*_ordered(a, b)),
    ast.Gt: lambda a, b: operator.gt(*_ordered(a, b)),
    ast.GtE: lambda a, b: operator.ge(*_ordered(a, b)),
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_KEYWORDS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Expression:
    """An expression over config fields and checkpoint metadata; raises RuleError where it cannot be read."""

    text: str

    def __post_init__(self) -> None:
        if len(self.text) > _MAX_LENGTH:
            raise RuleError(
                f"an expression of {len(self.text)} characters",
                expected=f"at most {_MAX_LENGTH}",
                field="when",
            )
        _check(self.tree, self.text)

    @cached_property
    def tree(self) -> ast.expr:
        """The parsed expression."""
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise RuleError(
                f"cannot read the expression {self.text!r}",
                expected="config fields, numbers, strings, + - * // %, comparisons, and / or / not, if / else",
                field="when",
            ) from error

    def value(self, config: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> Any:
        """Evaluate; raises RuleError where values do not go together (`None * 2`)."""
        try:
            return _evaluate(self.tree, {**config, "metadata": metadata or {}})
        except (TypeError, ZeroDivisionError, OverflowError, ValueError) as error:
            raise RuleError(
                f"{self.text!r} cannot be worked out: {error}",
                expected=f"config fields that fit it; the config has {self.fields(config)}",
                hint="set the field in the config, or correct the rule",
                field="config",
            ) from error

    @property
    def names(self) -> tuple[str, ...]:
        """The dotted names that it reads, sorted."""
        found = {_dotted(node) for node in ast.walk(self.tree) if isinstance(node, ast.Name | ast.Attribute)}
        found -= set(_KEYWORDS)
        return tuple(sorted(n for n in found if not any(o.startswith(n + ".") for o in found)))

    def fields(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Give what the config has in the fields that it reads; None for one that is absent."""
        return {name: _lookup(name, config) for name in self.names if not name.startswith("metadata")}


@dataclass(frozen=True)
class Predicate:
    """A condition that is a Python function of the config, or of config and metadata."""

    function: Callable[..., object]

    @property
    def text(self) -> str:
        """What to call it."""
        return getattr(self.function, "__name__", repr(self.function))

    @property
    def names(self) -> tuple[str, ...]:
        """The config fields that it reads: not known."""
        return ()

    def fields(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Give nothing: which fields it reads is not known."""
        return {}

    def value(self, config: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> Any:
        """Call it; raises RuleError, with the cause, for whatever it raises."""
        try:
            takes = len(signature(self.function).parameters)
            return self.function(config, metadata or {}) if takes > 1 else self.function(config)
        except Exception as error:  # a rule's author may raise anything
            raise RuleError(
                f"the condition {self.text} failed: {type(error).__name__}: {error}",
                expected="a function of the config, or of config and metadata",
                field="when",
            ) from error


Condition = Expression | Predicate


def condition(value: object) -> Condition | None:
    """Read a rule's `when`: a text, a function, or None; raises RuleError for anything else."""
    if value is None or isinstance(value, Expression | Predicate):
        return value
    if isinstance(value, str):
        return Expression(value)
    if callable(value):
        return Predicate(value)
    raise RuleError(f"when is {value!r}", expected="an expression as text, or a function", field="when")


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _lookup(dotted: str, config: Mapping[str, Any]) -> Any:
    value: Any = config
    for key in dotted.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _check(node: ast.expr, text: str) -> None:
    """Refuse every kind of node that `_evaluate` does not know."""
    allowed = (
        ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.Compare, ast.BoolOp, ast.UnaryOp,
        ast.IfExp, ast.List, ast.Tuple, ast.Load, ast.And, ast.Or, ast.Not, ast.USub, *_BINARY, *_COMPARE,
    )  # fmt: skip
    for part in ast.walk(node):
        if not isinstance(part, allowed) or not _is_plain(part):
            raise RuleError(
                f"{type(part).__name__} is not allowed in the expression {text!r}",
                expected="config fields, numbers, strings, + - * // %, comparisons, and / or / not, if / else",
                field="when",
            )


def _is_plain(node: ast.AST) -> bool:
    """Fields of fields, and items of a field by number: not of anything else."""
    if isinstance(node, ast.Attribute):
        return bool(_dotted(node.value))
    if isinstance(node, ast.Subscript):
        return bool(_dotted(node.value)) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int
    return True


def _evaluate(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name(id=name):
            return _KEYWORDS[name] if name in _KEYWORDS else scope.get(name)
        case ast.Attribute():
            return _lookup(_dotted(node), scope)
        case ast.Subscript(value=value, slice=ast.Constant(value=int(number))):
            return _item(_evaluate(value, scope), number)
        case ast.List() | ast.Tuple():
            return [_evaluate(item, scope) for item in node.elts]
        case ast.UnaryOp(op=ast.Not()):
            return not _evaluate(node.operand, scope)
        case ast.UnaryOp():
            return -_evaluate(node.operand, scope)
        case ast.BinOp():
            return _arithmetic(node, scope)
        case ast.IfExp():
            return _evaluate(node.body if _evaluate(node.test, scope) else node.orelse, scope)
        case ast.BoolOp(op=ast.And()):
            return all(_evaluate(value, scope) for value in node.values)
        case ast.BoolOp():
            return any(_evaluate(value, scope) for value in node.values)
        case ast.Compare():
            return _compare(node, scope)
    raise RuleError(f"{type(node).__name__} is not allowed in an expression", field="when")


def _item(value: Any, number: int) -> Any:
    if not isinstance(value, list) or number >= len(value):
        raise TypeError(f"{value!r} has no item {number}")
    return value[number]


def _arithmetic(node: ast.BinOp, scope: Mapping[str, Any]) -> Any:
    """Work on numbers alone: `'a' * 1000000000` must not take the machine's memory."""
    sides = [_evaluate(node.left, scope), _evaluate(node.right, scope)]
    if not all(isinstance(side, int | float) for side in sides):
        raise TypeError(f"{sides[0]!r} and {sides[1]!r} are not both numbers")
    return _BINARY[type(node.op)](*sides)


def _ordered(one: Any, other: Any) -> tuple[Any, Any]:
    texts = isinstance(one, str) and isinstance(other, str)
    return (version_key(one), version_key(other)) if texts else (one, other)


def _compare(node: ast.Compare, scope: Mapping[str, Any]) -> bool:
    values = [_evaluate(part, scope) for part in (node.left, *node.comparators)]
    pairs = pairwise(values)
    return all(_COMPARE[type(op)](a, b) for op, (a, b) in zip(node.ops, pairs, strict=True))
