"""A text that every match of a pattern holds, so that names without it need not be searched."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby

from weightloom.engine.mapping.syntax import Token, tokens


@lru_cache(maxsize=8192)
def required_text(text: str) -> str:
    """Give the longest text without digits that stands in every match of a pattern; "" if none is sure to."""
    parts = tokens(text)
    depths = _depths(parts)
    # After an open brace stands what `regex` may read as a fuzzy match.
    if any(part.text == "{" or (part.kind == "alt" and depth == 0) for part, depth in zip(parts, depths, strict=True)):
        return ""
    sure = [depth == 0 and _is_sure(parts, at) for at, depth in enumerate(depths)]
    runs = groupby(zip(sure, parts, strict=True), key=lambda item: item[0])
    return max(("".join(part.value for _, part in run) for is_sure, run in runs if is_sure), key=len, default="")


def _depths(parts: tuple[Token, ...]) -> list[int]:
    """Give for each token in how many parentheses it stands."""
    depth, found = 0, []
    for part in parts:
        depth += part.kind in ("group", "open", "look")
        found.append(depth)
        depth -= part.kind == "close"
    return found


def _is_sure(parts: tuple[Token, ...], at: int) -> bool:
    """Say whether a token stands for its own character, once, and no digit."""
    repeated = at + 1 < len(parts) and parts[at + 1].kind == "quantifier"
    return parts[at].kind == "literal" and not repeated and not parts[at].value.isdigit()
