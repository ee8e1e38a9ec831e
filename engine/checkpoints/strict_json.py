"""JSON from untrusted files: one object, UTF-8, each name once in its object, no NaN, no half characters.

Whatever the bytes are, the only error is CheckpointError.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import NoReturn

from weightloom.engine.errors import CheckpointError
from weightloom.engine.show import shown


class _Refused(Exception):
    """Legal to Python's reader, refused here; the text says what was seen."""


def parse_object(raw: bytes, *, file: str, what: str) -> dict[str, object]:
    """Read a JSON object; `what` is its name in messages ("the header").

    Raises CheckpointError for anything else: other encodings, other JSON values, names listed twice,
    nesting beyond the interpreter's limit, integers of thousands of digits, NaN and infinities, and
    escaped surrogates without their other half.
    """
    try:
        text = raw.decode()
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
        # Only an escape can bring in half a character: UTF-8 has no form for it.
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except _Refused as error:
        raise _bad(f"{what} {error}", file) from error
    except UnicodeDecodeError as error:
        raise _bad(f"{what} is not UTF-8: {error.reason} at byte {error.start}", file) from error
    except UnicodeEncodeError as error:
        near = shown(error.object[max(0, error.start - 40) : error.end])
        raise _bad(f"{what} has half a surrogate pair, after {near}", file) from error
    except json.JSONDecodeError as error:
        raise _bad(f"{what} is not JSON: {error.msg} at character {error.pos}", file) from error
    except (RecursionError, MemoryError) as error:
        raise _bad(f"{what} is nested too deeply or too large", file) from error
    except ValueError as error:
        raise _bad(f"{what} has an integer of thousands of digits", file) from error
    if type(value) is not dict:
        raise _bad(f"{what} is JSON, but not an object: {shown(value)}", file)
    return value


def parse_regular(
    raw: bytes, strings: Callable[[dict[str, object]], int], *, file: str, what: str
) -> dict[str, object]:
    """Read a JSON object as `parse_object` does, in less time where it is regular.

    `strings` says how many texts, names included, stand in an object of the form that the caller goes on to check.
    A name that is listed twice is one text more, and each has two quotes, if nothing is escaped.
    """
    value = None if b"\\" in raw else _plain_object(raw)
    if value is not None and raw.count(b'"') == 2 * strings(value):
        return value
    return parse_object(raw, file=file, what=what)


def strings_in(value: object) -> int:
    """Count the texts in a JSON value, names included."""
    if isinstance(value, dict):
        return len(value) + sum(map(strings_in, value.values()))
    return sum(map(strings_in, value)) if isinstance(value, list) else isinstance(value, str)


def _plain_object(raw: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(raw.decode(), parse_constant=_refuse_constant)
    except (_Refused, ValueError, RecursionError, MemoryError):
        return None
    return value if type(value) is dict else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) != len(pairs):
        name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise _Refused(f"lists the name {shown(name)} twice")
    return values


def _refuse_constant(text: str) -> NoReturn:
    raise _Refused(f"has the number {text}, which JSON does not have")


def _bad(seen: str, file: str) -> CheckpointError:
    return CheckpointError(
        seen,
        expected="a JSON object in UTF-8 in which each name is listed once",
        hint="the file is damaged or was written by a faulty program: download or write it again",
        file=file,
    )
