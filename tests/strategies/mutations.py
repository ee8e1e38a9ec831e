"""Good JSON with something wrong in it: values replaced, taken out, or put under another name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

_TELLING = ["", " 8", "1e3", 10**400, -0.0, 2**63, -1, 2**32]


def junk(*telling: Any) -> st.SearchStrategy[Any]:
    """Any JSON value, and often one of `telling`, which mean something where they may end up."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
    return st.recursive(
        leaves | st.sampled_from([*_TELLING, *telling]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=5,
    )


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Give the way to each value inside an object."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way for key, each in inner for way in ((*at, key), *paths(each, (*at, key)))]


@st.composite
def mutated(
    draw: st.DrawFn, bases: Sequence[dict[str, Any]], values: st.SearchStrategy[Any], names: Sequence[str]
) -> dict[str, Any]:
    """One of the good ones with one to four changes; new values are of `values`, new names often of `names`."""
    changed: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(bases))))
    for _ in range(draw(st.integers(1, 4))):
        known = paths(changed)
        if not known:
            break
        *way, last = draw(st.sampled_from(known))
        place: Any = changed
        for key in way:
            place = place[key]
        kind = draw(st.sampled_from(["replace", "replace", "remove", "rename"]))
        if kind == "replace":
            place[last] = draw(values)
        elif kind == "rename" and isinstance(place, dict):
            place[draw(st.sampled_from(names) | st.text(max_size=5))] = place.pop(last)
        else:
            del place[last]
    return changed
