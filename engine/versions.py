"""Versions of software, put in order: "4.57.1" is before "5.0.0rc1", that before "5", and "5" before "10"."""

from __future__ import annotations

import re
from math import inf

VersionKey = tuple[tuple[int, ...], tuple[int, int], int, float]

_VERSION = re.compile(
    r"""\s* v? (?P<release> \d+ (?:\.\d+)* )
    (?: [-_.]? (?P<stage> alpha | beta | preview | pre | a | b | c | rc ) [-_.]? (?P<pre> \d* ) )?
    (?: [-_.]? (?: post | rev | r ) [-_.]? (?P<post> \d* ) | - (?P<patch> \d+ ) )?
    (?P<dev> [-_.]? dev [-_.]? (?P<day> \d* ) )?
    (?: \+ [a-z0-9]+ (?: [-_.] [a-z0-9]+ )* )? \s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1}
_CANDIDATE, _RELEASED, _BEFORE_ALL = 2, 3, -1


def version_key(text: str) -> VersionKey:
    """Give what versions are ordered by, as PEP 440 orders them; what stands after `+` does not count.

    Raises ValueError where the text is no version.
    """
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no version, and other texts have no order")
    post = found["post"] if found["patch"] is None else found["patch"]
    dev = inf if found["dev"] is None else int(found["day"] or 0)
    return _release(found["release"]), _stage(found, post), -1 if post is None else int(post or 0), dev


def _release(text: str) -> tuple[int, ...]:
    numbers = [int(number) for number in text.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _stage(found: re.Match[str], post: str | None) -> tuple[int, int]:
    if found["stage"] is not None:
        return _STAGES.get(found["stage"].lower(), _CANDIDATE), int(found["pre"] or 0)
    return (_BEFORE_ALL if found["dev"] is not None and post is None else _RELEASED), 0
