"""Which patterns treat all numbers alike, so that one name can stand for every name of its shape.

A pattern is *digit-blind* if its digits are `\\d+`, `*.` or literal runs between non-digits: whether and where it
matches then depends only on which of its own literal numbers stand in the name. The test is conservative: a
bare `.`, a class, another escape or a back-reference makes a pattern be matched name by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from weightloom.engine.mapping.syntax import Token, group_end, group_start, tokens


@dataclass(frozen=True, slots=True)
class Spelt:
    """A number that a pattern spells out, and the text that stands before it in every match."""

    before: str
    number: str


def spelt_numbers(text: str) -> frozenset[Spelt] | None:
    """Give the numbers that a pattern spells out, or None when the pattern is not digit-blind."""
    parts = tokens(text)
    found: set[Spelt] = set()
    at = 0
    while at < len(parts):
        token = parts[at]
        if token.kind in ("class", "ref"):
            return None
        if token.kind == "look":
            end = group_end(parts, at)
            if not all(_plain(part) for part in parts[at + 1 : end]):
                return None
            at = end
        elif token.kind == "special" or token.kind == "any":
            if not _swallows_runs(parts, at):
                return None
        elif token.kind == "star":
            if not _open_before(parts, at):
                return None
        elif _is_digit(token):
            end = _run_end(parts, at)
            number = "".join(part.value for part in parts[at:end])
            # Digits of other scripts, and signs such as `²`, are read as numbers by some and as text by others.
            before = _text_before(parts, at)
            if not number.isascii() or before is None or not (end == len(parts) or _stops_after(parts, end)):
                return None
            found.add(Spelt(before, number))
            at = end - 1
        at += 1
    return frozenset(found)


def _is_digit(token: Token) -> bool:
    return token.kind == "literal" and token.value.isdigit()


def _plain(token: Token) -> bool:
    """A token inside a lookaround that cannot see digits."""
    if token.kind == "literal":
        return not token.value.isdigit()
    return token.kind in ("group", "open", "close", "alt", "anchor")


def _run_end(parts: tuple[Token, ...], at: int) -> int:
    while at < len(parts) and _is_digit(parts[at]):
        at += 1
    return at


def _swallows_runs(parts: tuple[Token, ...], at: int) -> bool:
    """`\\d+`, `.+` and `.*` between non-digits take whole runs of digits or none."""
    follows = parts[at + 1] if at + 1 < len(parts) else None
    if follows is None or follows.kind != "quantifier":
        return False
    wanted = {"\\d": ("+",), ".": ("*", "+")}.get(parts[at].text, ())
    return follows.text in wanted and _open_before(parts, at) and _closed_after(parts, at + 2)


def _open_before(parts: tuple[Token, ...], at: int) -> bool:
    """What stands before is a non-digit, the pattern's start, or a group that begins so."""
    at -= 1
    while at >= 0 and parts[at].kind in ("group", "open", "close"):
        if parts[at].kind == "close":
            at = group_start(parts, at)
            if parts[at].kind != "look":
                return False
        at -= 1
    return at < 0 or parts[at].kind == "anchor" or (parts[at].kind == "literal" and not _is_digit(parts[at]))


def _closed_after(parts: tuple[Token, ...], at: int) -> bool:
    """What stands behind is a non-digit or the pattern's end."""
    while at < len(parts) and parts[at].kind == "close":
        at += 1
    if at >= len(parts):
        return True
    if parts[at].kind != "literal" or _is_digit(parts[at]):
        return False
    return not (at + 1 < len(parts) and parts[at + 1].kind == "quantifier")


def _text_before(parts: tuple[Token, ...], at: int) -> str | None:
    """Give the text before a number, which ends in no digit: "" after an anchor; None where it is not sure.

    A number with which a group, or a choice in it, begins has the text before the group. At the pattern's end the
    name boundary stands behind a number.
    """
    before = parts[at - 1] if at else None
    if before is not None and before.kind in ("alt", "open", "group"):
        start = _edge(parts, at - 1, -1) if before.kind == "alt" else at - 1
        return None if start is None else _text_before(parts, start)
    if before is None or before.kind not in ("literal", "anchor") or _is_digit(before):
        return None
    run = takewhile(lambda part: part.kind == "literal" and not _is_digit(part), reversed(parts[:at]))
    return "".join(part.value for part in run)[::-1]


def _stops_after(parts: tuple[Token, ...], at: int) -> bool:
    """What stands behind is a non-digit, not repeated; behind a group, for a number that a choice in it ends with."""
    if at >= len(parts):
        return False
    after = parts[at]
    if after.kind not in ("alt", "close"):
        repeated = at + 1 < len(parts) and parts[at + 1].kind == "quantifier"
        return after.kind == "literal" and not _is_digit(after) and not repeated
    end = _edge(parts, at, 1) if after.kind == "alt" else at
    return end is not None and _stops_after(parts, end + 1)


def _edge(parts: tuple[Token, ...], at: int, step: int) -> int | None:
    """Give the index of the parenthesis around a token, on its left (step -1) or right (1); None if it has none."""
    depth = 0
    while 0 <= at + step < len(parts):
        at += step
        opens = parts[at].kind in ("group", "open", "look")
        depth += step if opens else -step if parts[at].kind == "close" else 0
        if depth < 0:
            return at
    return None
