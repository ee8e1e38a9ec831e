"""The text of a config.json as people have it: what strict JSON does not know is repaired token by token, and named.

Python writes NaN and Infinity, and people write its True, False and None; editors leave a byte-order mark, comments
(`//` and `/* */`), or a comma behind the last item. Texts in quotes are tokens of their own and are never looked into.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_BOM = "\ufeff"
_COMMENT = r"//[^\n]*|(?>/\*[\s\S]*?\*/)"
_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>-?\bInfinity\b|\bNaN\b)"
    r"|(?P<word>\b(?:True|False|None)\b)"
    rf"|(?P<comment>{_COMMENT})"
    rf"|(?P<comma>,(?=(?:\s|{_COMMENT})*+[}}\]]))"
    r'|[^",\-/INTF]+|.',
    re.DOTALL,
)
_LEFT_OUT = {"comma": "a comma after the last item", "comment": "a comment"}
_WORDS = {"True": "true", "False": "false", "None": "null"}
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
    kept = [token for token in tokens if token.lastgroup not in _LEFT_OUT]
    readable = [_WORDS[token.group()] if token.lastgroup == "word" else token.group() for token in kept]
    marks = () if body == text else ("a byte-order mark is left out",)
    return ConfigText(
        "".join(readable),
        "".join(_STRICT.get(word, word) for word in readable),
        (*marks, *_named(tokens, body)),
    )


def strict_json(values: Any) -> bytes:
    """Write a config's values as strict JSON, in UTF-8; an infinity is a decimal that is read as one."""
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    # Half a surrogate pair, which has no bytes of its own, keeps the escape that it came in.
    return repaired(text).strict.encode("utf-8", "backslashreplace")


def _named(tokens: list[re.Match[str]], body: str) -> Iterator[str]:
    line, seen = 1, 0
    for token in tokens:
        if token.lastgroup is None or token.lastgroup == "text":
            continue
        line, seen = line + body.count("\n", seen, token.start()), token.start()
        yield f"{_said(token)} (line {line})"


def _said(token: re.Match[str]) -> str:
    if token.lastgroup in _LEFT_OUT:
        return f"{_LEFT_OUT[token.lastgroup]} is left out"
    found = token.group()
    made = f"read as {_WORDS[found]}" if found in _WORDS else f"saved as {_STRICT[found]}"
    return f"{found} is no JSON; it is {made}"
