"""Whether a converter's ops can be lowered at all: tried on made-up shapes and a made-up config."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import product
from typing import Any

from weightloom.engine.errors import WeightloomError
from weightloom.engine.expressions import Expression
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.ops.base import ConversionOp, amount
from weightloom.engine.ops.chain import Part
from weightloom.engine.ops.cutting import Chunk, Split
from weightloom.engine.ops.permuting import Transpose
from weightloom.engine.planning.groups import bind
from weightloom.engine.spec import TensorSpec

_LIST_LENGTH = 4
_FIELD_VALUE = 4
_ROWS = 48
_DIMS = (1, 2, 3, 4)


def ops_complaint(rule: WeightConverter) -> str | None:
    """Say why the ops can never be lowered; None where some shapes let them through, or shapes must be real ones."""
    if any(op.needs_real_shapes for op in rule.operations):
        return None
    ops = tuple(map(_without_shapes, rule.operations))
    trial = rule if ops == rule.operations else rule.replace(operations=ops)
    config = _config(trial.operations)
    reasons: list[str] = []
    for rows, dims in product(sorted(_row_counts(trial, config)), _DIMS):
        reason = _attempt(trial, (rows,) * dims, config)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[len(reasons) // 2]


def _attempt(rule: WeightConverter, shape: tuple[int, ...], config: dict[str, Any]) -> str | None:
    parts = tuple(
        Part(text, (TensorSpec("F32", shape),) * (_LIST_LENGTH if rule.collects(i) else 1))
        for i, text in enumerate(rule.source_patterns)
    )
    try:
        _, made = bind(parts, rule, (None,) * len(rule.target_patterns), config)
    except WeightloomError as error:
        return error.seen
    except Exception as error:  # another package's op may raise anything
        return f"{type(error).__name__}: {error}"
    if len(made) != len(rule.target_patterns):
        return f"the ops make {len(made)} parts for {len(rule.target_patterns)} targets"
    single = [i for i, part in enumerate(made) if len(part.specs) != 1 and not rule.numbers(i)]
    if single:
        count = len(made[single[0]].specs)
        return f"the ops make a list of {count} for '{rule.target_patterns[single[0]]}', which has no star to number"
    return None


def _without_shapes(op: ConversionOp) -> ConversionOp:
    """Exchange an op that reads its targets' shapes for one that does the like without."""
    if isinstance(op, Split) and op.sizes is None:
        return Chunk(op.dim)
    if isinstance(op, Transpose):
        return Transpose(op.dim0, op.dim1, only=op.only)
    return op


def _row_counts(rule: WeightConverter, config: dict[str, Any]) -> set[int]:
    """Lengths to try: one that many counts divide, and what each Split's sizes add up to."""
    counts = {_ROWS, _ROWS * max(1, len(rule.target_patterns))}
    for op in rule.operations:
        if isinstance(op, Split) and op.sizes is not None:
            try:
                counts.add(sum(amount("Split", size, config) for size in op.sizes))
            except WeightloomError:
                continue
    return counts


def _config(ops: tuple[ConversionOp, ...]) -> dict[str, Any]:
    """A config that has a small number for every field that an op names."""
    config: dict[str, Any] = {"num_attention_heads": _FIELD_VALUE, "head_dim": _FIELD_VALUE}
    for name in (name for op in ops for text in _texts(op) for name in _names(text)):
        *outer, last = name.split(".")
        inner = config
        for key in outer:
            inner = inner.setdefault(key, {}) if isinstance(inner.get(key, {}), dict) else {}
        inner.setdefault(last, _FIELD_VALUE)
    return config


def _names(text: str) -> tuple[str, ...]:
    try:
        return Expression(text).names
    except WeightloomError:
        return ()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)
    elif dataclasses.is_dataclass(value):
        skipped = ("subconfig_key", "permute_layer_names")
        for field in dataclasses.fields(value):
            if field.name not in skipped:
                yield from _texts(getattr(value, field.name))
