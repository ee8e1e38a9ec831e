"""An adapter as the command line names it: DIR, or DIR:SCALE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weightloom.engine.errors import UsageError
from weightloom.runtime.adapting.wish import Weighted, checked_scale

FORM = "DIR or DIR:SCALE, where SCALE is a finite number"


def weighted(text: str) -> Weighted:
    """Read a directory with the scale of its adapter, by default 1; a path that is there is never split.

    Elsewhere the last colon splits. Raises UsageError for no directory, or a scale that is no finite number.
    """
    if not text:
        raise UsageError("an adapter without a name", expected=FORM, field="adapter")
    if Path(text).exists() or ":" not in text:
        return Path(text), 1.0
    path, _, scale = text.rpartition(":")
    return Path(path or _no_path(text)), _scale(scale, text)


def all_weighted(texts: Sequence[str] | None) -> tuple[Weighted, ...]:
    """Read several, in their order; raises as `weighted` does."""
    return tuple(map(weighted, texts or ()))


def _no_path(text: str) -> str:
    raise UsageError(f"{text!r} has no directory before its colon", expected=FORM, field="adapter")


def _scale(scale: str, text: str) -> float:
    try:
        return checked_scale(text, float(scale))
    except ValueError as error:
        raise UsageError(
            f"there is no directory {text}, and after its last colon {scale!r} is no number",
            expected=FORM,
            field="adapter",
        ) from error
