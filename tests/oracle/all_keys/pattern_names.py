"""Names that a pattern of the reference implementation matches, made from the pattern itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from re import _constants as codes, _parser  # type: ignore[attr-defined]  # isort: skip

_MOST = 12
_BEFORE = ("", "model.", "language_model.model.layers.11.", "vision_tower.")
_AFTER_A_DOT = ("weight", "part.0.w")
_AFTER_A_WORD = ("", ".part.0.bias")
_AFTER_ELSE = ("x.weight",)


def names_for(pattern: str) -> list[str]:
    """Give names in which a source pattern is found: its texts among what stands around them in real names."""
    found = []
    for text in texts(pattern.replace("*.", r".*\.")):
        after = _AFTER_A_DOT if text.endswith(".") else _AFTER_A_WORD if re.search(r"[\w)]$", text) else _AFTER_ELSE
        before = _BEFORE if not pattern.startswith("^") else ("",)
        found += [(start + text + end).replace("..", ".").lstrip(".") for start, end in product(before, after)]
    return list(dict.fromkeys(filter(None, found)))


def texts(pattern: str) -> list[str]:
    """Give short texts that a regular expression matches: every alternative, lookarounds left aside."""
    return list(dict.fromkeys(islice(_of_all(list(_parser.parse(pattern))), _MOST)))


def _of_all(items: list[Any]) -> Iterator[str]:
    parts = [list(islice(_of_one(code, value), _MOST)) for code, value in items]
    return ("".join(chosen) for chosen in product(*parts))


def _of_one(code: Any, value: Any) -> Iterator[str]:
    if code is codes.LITERAL:
        yield chr(value)
    elif code is codes.ANY:
        yield "."
    elif code is codes.IN:
        yield from _of_class(value)
    elif code is codes.SUBPATTERN:
        yield from _of_all(list(value[-1]))
    elif code is codes.BRANCH:
        for branch in value[1]:
            yield from _of_all(list(branch))
    elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        least, _, body = value
        anything = len(body) == 1 and body[0][0] is codes.ANY
        yield from (["7"] if anything else (text * max(least, 1) for text in _of_all(list(body))))
    else:
        yield ""


def _of_class(items: list[tuple[Any, Any]]) -> list[str]:
    """A number even and odd; else the first character of the class."""
    code, value = items[0]
    if code is codes.CATEGORY:
        return ["6", "7"] if value is codes.CATEGORY_DIGIT else ["x"]
    return [chr(value[0] if code is codes.RANGE else value)]
