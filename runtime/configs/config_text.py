"""The text of a config.json as people have it: what strict JSON does not know is repaired token by token, and named.

Python writes NaN and Infinity; editors leave a byte-order mark, or a comma behind the last item. Texts in quotes are
tokens of their own and are never looked into.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BOM = "\ufeff"
_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<number>-?\bInfinity\b|\bNaN\b)|(?P<comma>,(?=\s*[}\]]))|[^",\-IN]+|.', re.DOTALL
)
# A decimal too large for a double is read as infinity everywhere; JSON has no form for what is not a number.
_STRICT = {"Infinity": "1e999", "-Infinity": "-1e999", "NaN": "null"}


@dataclass(frozen=True, slots=True)
class ConfigText:
    """`readable` is what Python's reader takes, `strict` is JSON; `repairs` say, one a place, what was not."""

    readable: str
    strict: str
    repairs: tuple[str, ...] = ()


def repaired(text: str) -> ConfigText:
    """Repair a text; one that is strict JSON, or broken in another way, comes back as it is."""
    body = text.removeprefix(_BOM)
    tokens = list(_TOKEN.finditer(body))
    kept = [token for token in tokens if token.lastgroup != "comma"]
    marks = () if body == text else ("a byte-order mark is left out",)
    return ConfigText(
        "".join(token.group() for token in kept),
        "".join(_STRICT[token.group()] if token.lastgroup == "number" else token.group() for token in kept),
        (*marks, *_named(tokens, body)),
    )


def _named(tokens: list[re.Match[str]], body: str) -> Iterator[str]:
    line, seen = 1, 0
    for token in tokens:
        if token.lastgroup not in ("comma", "number"):
            continue
        line, seen = line + body.count("\n", seen, token.start()), token.start()
        if token.lastgroup == "comma":
            yield f"a comma after the last item is left out (line {line})"
        else:
            yield f"{token.group()} is no JSON; it is saved as {_STRICT[token.group()]} (line {line})"
