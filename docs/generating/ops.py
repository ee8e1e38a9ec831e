"""The ops that rule files know, with their arguments and what undoes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from docs.generating.tables import cell, plain, table
from weightloom.engine import ops as engine_ops
from weightloom.engine.ops import ConversionOp
from weightloom.rules import default_ops
from weightloom.rules.arguments import parameters, wording

# It reads the same bytes as another dtype: a value step, and undone to the bit.
_ONLY_READS = {"BitView"}


def text() -> str:
    """Give a section for each op, by name."""
    return "\n".join(_section(name, getattr(engine_ops, name)) for name in default_ops.names())


def computes(op: type[ConversionOp]) -> bool:
    """Say whether an op changes values, and does not only move elements."""
    own = [kind for kind in op.__mro__ if issubclass(kind, ConversionOp) and kind is not ConversionOp]
    return any("chain.value(" in inspect.getsource(kind) for kind in own)


def way_back(name: str, op: type[ConversionOp]) -> str:
    """Say what a save does with what the op has made."""
    if not op.invertible:
        return "none: a rule that has it is lossy"
    if computes(op) and name not in _ONLY_READS:
        return "rounded; with `fidelity: keeps` the source's own bytes, where nothing has changed"
    return "exact"


def undone_by(op: type[ConversionOp]) -> str:
    """Name the op that undoes it."""
    said = str(inspect.signature(op.inverse).return_annotation)
    public = [each.strip(" '\"") for each in said.split("|")]
    return " or ".join(f"`{each}`" for each in public if hasattr(engine_ops, each)) or "an op that only saves have"


def _section(name: str, op: type[ConversionOp]) -> str:
    doc = inspect.getdoc(op) or ""
    facts = (
        f"* elements: {'computed' if computes(op) else 'moved'}",
        f"* undone by: {undone_by(op)}",
        f"* way back: {way_back(name, op)}",
        f"* on the factors of adapters: {'yes' if 'on_factors' in vars(op) else 'refused'}",
    )
    return f"## {name}\n\n{plain(doc)}\n\n" + "\n".join(facts) + f"\n\n{_arguments(op)}\n"


def _arguments(op: Callable[..., Any]) -> str:
    defaults = {name: each.default for name, each in inspect.signature(op).parameters.items()}
    rows = ((f"`{name}`", cell(wording(hint)), _default(defaults[name])) for name, hint in parameters(op).items())
    return table(("argument", "takes", "if left out"), rows)


def _default(value: object) -> str:
    return (
        "has to be there"
        if value is inspect.Parameter.empty
        else "null"
        if value is None
        else f"`{str(value).lower() if isinstance(value, bool) else value}`"
    )
