"""Names and rules on names: digits everywhere, and patterns that may or may not see them."""

from __future__ import annotations

from collections.abc import Callable

import regex
from hypothesis import reject
from hypothesis import strategies as st

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.claims import Drop
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.index_map import IndexMap
from weightloom.engine.mapping.prefix import PrefixChange
from weightloom.engine.mapping.rename_group import RenameGroup
from weightloom.engine.mapping.renaming import WeightRenaming
from weightloom.engine.mapping.rule import Rule, Scope
from weightloom.engine.ops import (
    Transpose,
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


MANY_DIGITS = ("0", "00", "01", "007", "12", "1" * 24, "90000009", "9000000", "0009", "٣", "१२")
NUMBERS = st.one_of(st.integers(0, 12).map(str), st.sampled_from(MANY_DIGITS))
WORDS = st.sampled_from(_words("a b ab layers norm model w weight x² 50% %s {0} {i} é _"))
COMPONENTS = st.one_of(
    WORDS,
    NUMBERS,
    st.builds("{}{}".format, WORDS, NUMBERS),
    st.builds("{}{}".format, NUMBERS, WORDS),
    st.builds("{}{}{}".format, WORDS, NUMBERS, WORDS),
)
ANY_NAMES = st.lists(COMPONENTS, min_size=1, max_size=5).map(".".join)
NAME_LISTS = st.lists(ANY_NAMES, min_size=1, max_size=12, unique=True)

ATOMS = st.sampled_from(
    _words(r"a b ab layers norm model w x² 50% { é _ \. \. \. . - \d+ (\d+) \d 1 12 0 007 ٣ ² 3a .* .+ *. \.*.")
    + _words(
        r"(.+) (a|b) (?:a|1) (\d+)? [0-9] [^.]+ \w+ a? 1? (?!a) (?!1) (?<=a) (?<!\.) (?=\d) (?:ab)+ (?:1|12) (1|a\.)"
    )
    + _words(r"(\d+\.)+ 1{2} a{2} \b \D ^ $ | (?:1|12) (1|a\.)")
)


def _ended(start: str, atoms: list[str], end: str) -> str:
    return "".join([start, *atoms, end])


SOURCES = st.builds(_ended, st.sampled_from(("", "", "^")), st.lists(ATOMS, max_size=5), st.sampled_from(("", "", "$")))
TARGETS = st.lists(st.sampled_from(_words(r"a b model layers norm . \. \1 \2 1 12 é % *. q")), max_size=4).map("".join)
SCOPES = st.one_of(
    st.none(),
    st.builds(
        Scope,
        st.sampled_from(("", "a", "model", "layers.1", "12", "layers")),
        st.sampled_from(("", "model", "a", "model.1")),
    ),
)


@st.composite
def name_rules(draw: st.DrawFn) -> Rule:
    """A rule on names; patterns that the engine refuses are drawn again."""
    common = {"scope": draw(SCOPES)}
    several = st.lists(SOURCES, min_size=1, max_size=2)
    above = st.sampled_from((None, "model"))
    makers: list[Callable[[], Rule]] = [
        lambda: WeightRenaming(draw(several), draw(TARGETS), **common),
        lambda: WeightRenaming(draw(SOURCES), draw(TARGETS), **common),
        lambda: RenameGroup([draw(SOURCES), draw(SOURCES)], [draw(TARGETS), draw(TARGETS)], **common),
        lambda: PrefixChange(prefix_to_add=draw(ANY_NAMES), **common),
        lambda: PrefixChange(prefix_to_remove=draw(COMPONENTS), model_prefix=draw(above), **common),
        lambda: IndexMap(r"layers\.{2i+1}", "layers.{i}", **common),
        lambda: Drop(draw(SOURCES), **common),
        lambda: WeightConverter(draw(several), draw(TARGETS), [Transpose()], **common),
    ]
    make = draw(st.sampled_from(makers))
    # Its cache would draw random numbers to shrink, which Hypothesis forbids in a strategy.
    regex.purge()
    try:
        return make()
    except RuleError:
        reject()


RULE_LISTS = st.lists(name_rules(), min_size=1, max_size=4)
