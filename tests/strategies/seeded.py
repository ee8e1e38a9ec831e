"""Good files made bad: values replaced, taken out or put elsewhere, and bytes of a text exchanged.

A mutation follows from one seed, which is cheap enough for tens of thousands of them; Hypothesis draws the seed, so
that a failure is named by it and found again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

# A file that is no config at all is refused at once: most mutations must leave one that is nearly good.
MOST = 4
MANY = settings(max_examples=5_000 if settings.get_current_profile_name() == "thorough" else 150)
seeds = st.integers(0, 2**48).map(Random)

INTEGERS = (0, 1, 2, 3, 7, -1, -8, 2**16, 2**31, 2**63, 10**400)
NUMBERS = (*INTEGERS, 0.5, 4.0, -0.0, 1e-300, 1e308, math.inf, -math.inf, math.nan)
TEXTS = ("", " 8", "1e3", "-inf", "\x00", "\ud800", "..", "a" * 300, "(", "[", "*", "^", "\\1", "é", "{}", "null")
PLAIN = (None, True, False)


def junk(random: Random, words: Sequence[str], depth: int = 2) -> Any:
    """Make any value that JSON has, some of whose texts are among `words`."""
    kind = random.randrange(8 if depth else 6)
    if kind < 2:
        return random.choice(NUMBERS)
    if kind < 5:
        return random.choice(words if random.random() < 0.6 else TEXTS)
    if kind == 5:
        return random.choice(PLAIN)
    inner = [junk(random, words, depth - 1) for _ in range(random.randrange(4))]
    return inner if kind == 6 else {random.choice([*words, *TEXTS]): each for each in inner}


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Give the way to each value inside an object."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way for key, each in inner for way in ((*at, key), *paths(each, (*at, key)))]


def mutated(value: Any, random: Random, words: Sequence[str]) -> Any:
    """Give a copy with some values replaced, taken out, doubled, nested, or put under another name."""
    found = json.loads(json.dumps(value))
    for _ in range(random.randint(1, MOST)):
        known = paths(found)
        if not known:
            break
        *way, last = random.choice(known)
        place = found
        for key in way:
            place = place[key]
        _change(place, last, random, words)
    return found


def _change(place: Any, last: Any, random: Random, words: Sequence[str]) -> None:
    kind = random.randrange(10)
    if kind < 6:
        place[last] = junk(random, words)
    elif kind == 6:
        place[last] = _beside(place[last], random)
    elif kind == 7 and isinstance(place, dict):
        place[random.choice([*words, *TEXTS])] = place.pop(last)
    elif kind == 8:
        place[last] = random.choice([[place[last]], {random.choice(words): place[last]}, str(place[last])])
    else:
        del place[last]


def _beside(value: Any, random: Random) -> Any:
    """Give a value that is nearly the same."""
    if isinstance(value, bool) or value is None:
        return random.choice([None, True, False, 0, 1, "true"])
    if isinstance(value, int | float):
        return random.choice([-value, value + 1, value * 2, value // 3, value * 10**6, str(value), float(str(value))])
    if isinstance(value, list):
        return random.choice([value * 2, value[:-1], [*value, *value[:1]], value[::-1]])
    return value[:-1] if isinstance(value, str) else list(value)


def mutated_text(raw: bytes, random: Random, words: Sequence[bytes]) -> bytes:
    """Exchange some runs of bytes for others."""
    for _ in range(random.randint(1, 3)):
        start, length = random.randint(0, len(raw)), random.randint(0, 12)
        put = random.choice(words) if random.random() < 0.6 else random.randbytes(random.randint(0, 4))
        raw = raw[:start] + put + raw[start + length :]
    return raw
