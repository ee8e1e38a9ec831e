import pytest

from weightloom.engine.mapping.patterns import compile_source
from weightloom.rules.linting.examples import example
from weightloom.rules.linting.regex_tree import Group, Repeat, consumes, first_characters, parse_pattern


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (r"\.experts\.*.w1\.weight", ".experts.7.w1.weight"),
        (r"layers\.(\d+)\.fc1", "layers.7.fc1"),
        (r"^model(?!\.visual)", "model"),
        (r"(a|b)c{2,3}d?[xy]+", "accx"),
        (r"(?:ab){3}", "ababab"),
        (r"a.b", "a7b"),
    ],
)
def test_an_example_is_matched(pattern: str, name: str) -> None:
    assert example(compile_source(pattern, {}, anchored=False)) == name


@pytest.mark.parametrize("pattern", ["", "a^b", "(?=a)b", "^(?!a)"])
def test_where_there_is_none(pattern: str) -> None:
    assert example(compile_source(pattern, {}, anchored=False)) is None


def test_the_tree_of_a_pattern() -> None:
    tree = parse_pattern(r"a|(b+|c{2,3})?d{4}e{5,}")
    assert len(tree.branches) == 2
    inner, four, five = tree.branches[1]
    assert isinstance(inner, Repeat) and (inner.least, inner.most) == (0, 1)
    assert isinstance(inner.body, Group)
    b, c = inner.body.branches[0][0], inner.body.branches[1][0]
    assert isinstance(b, Repeat) and (b.least, b.most) == (1, None)
    assert isinstance(c, Repeat) and (c.least, c.most) == (2, 3)
    assert isinstance(four, Repeat) and (four.least, four.most) == (4, 4)
    assert isinstance(five, Repeat) and (five.least, five.most) == (5, None)


def test_what_a_pattern_takes_and_begins_with() -> None:
    assert (
        consumes(parse_pattern("a|b")) and not consumes(parse_pattern("a|b*")) and not consumes(parse_pattern("(?=a)"))
    )
    assert first_characters(parse_pattern(r"a?(?:b|\.)c").branches[0]) == {"a", "b", "."}
