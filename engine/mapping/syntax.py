"""Read a pattern's text into tokens: the regular expression syntax, plus the glob `*.`.

One reader serves both ways a text is used (as a source pattern that is searched for, and as a target
template that is filled in), the test for digit blindness, and the linter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from weightloom.engine.errors import RuleError

Kind = Literal[
    "literal",
    "any",
    "special",
    "class",
    "group",
    "open",
    "look",
    "close",
    "alt",
    "quantifier",
    "anchor",
    "ref",
    "star",
]


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of pattern text.

    `kind`: a `literal` character (its escape taken off in `value`), `any` (`.`), a `special` escape (`\\d`),
    a `class` (`[...]`), a capturing `group`, another `open` parenthesis, a `look`around, `close`, `alt`ernation,
    `quantifier`, `anchor` (`^`, `$`), a `ref`erence (`\\1`), or a `star` (`*.`).
    """

    kind: Kind
    text: str
    value: str
    at: int


_TOKEN = re.compile(
    r"""
    (?P<ref>\\[1-9])
  | (?P<special>\\(?:[A-Za-z]|0))
  | (?P<escaped>\\.)
  | (?P<class>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])
  | (?P<look>\(\?(?:<?[=!]))
  | (?P<named>\(\?P?<\w+>)
  | (?P<open>\(\?[^\s<=!P:)]*:|\(\?>|\(\?\|)
  | (?P<odd>\(\?)
  | (?P<group>\()
  | (?P<close>\))
  | (?P<star>\*\.)
  | (?P<quantifier>(?:[*+?]|\{\d*,?\d*\})[?+]?)
  | (?P<alt>\|)
  | (?P<anchor>[\^$])
  | (?P<any>\.)
  | (?P<literal>[^\\])
    """,
    re.VERBOSE | re.DOTALL,
)
_AS: dict[str, Kind] = {"escaped": "literal", "named": "group"}


def tokens(text: str) -> tuple[Token, ...]:
    """Split a pattern's text; raises RuleError where it is not pattern syntax or uses inline flags."""
    return tuple(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup in (None, "odd"):
            raise RuleError(
                f"pattern {text!r}: cannot read {text[at : at + 8]!r} at character {at}",
                expected="a regular expression without inline flags or comments",
                field="pattern",
            )
        name = found.lastgroup or ""
        piece = found.group()
        yield Token(_AS.get(name, name), piece, piece[1:] if name == "escaped" else piece, at)  # type: ignore[arg-type]
        at = found.end()


def group_end(parts: tuple[Token, ...], start: int) -> int:
    """Give the index of the `close` that ends the group opened at index `start`; RuleError if there is none."""
    depth = 0
    for i in range(start, len(parts)):
        if parts[i].kind in ("group", "open", "look"):
            depth += 1
        elif parts[i].kind == "close":
            depth -= 1
            if depth == 0:
                return i
    text = "".join(part.text for part in parts)
    raise RuleError(
        f"pattern {text!r}: a parenthesis is never closed", expected="balanced parentheses", field="pattern"
    )


def group_start(parts: tuple[Token, ...], end: int) -> int:
    """Give the index of the token that opened the group which the `close` at index `end` ends."""
    depth = 0
    for i in range(end, -1, -1):
        if parts[i].kind == "close":
            depth += 1
        elif parts[i].kind in ("group", "open", "look"):
            depth -= 1
            if depth == 0:
                return i
    text = "".join(part.text for part in parts)
    raise RuleError(
        f"pattern {text!r}: a parenthesis is never opened", expected="balanced parentheses", field="pattern"
    )


def joined(parts: tuple[Token, ...]) -> str:
    """Give the text back."""
    return "".join(part.text for part in parts)
