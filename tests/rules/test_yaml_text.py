import pytest
import yaml

from weightloom.engine.errors import RuleError
from weightloom.rules import yaml_text
from weightloom.rules.nodes import List, Node, Scalar, Table, plain, show, texts
from weightloom.rules.problems import Mark, Problems, RuleFileError
from weightloom.rules.yaml_text import MAX_BYTES, MAX_DEPTH, read_yaml


def node_of(text: str | bytes) -> Node:
    problems = Problems("a.yaml")
    node = read_yaml(text if isinstance(text, bytes) else text.encode(), problems)
    problems.check()
    return node


def first_problem(text: str | bytes) -> str:
    with pytest.raises(RuleFileError) as caught:
        node_of(text)
    return str(caught.value).split("\n")[0]


def test_values_and_places() -> None:
    node = node_of("a: 1\nb: ['x', z]\nc:\n  d: null\n")
    assert plain(node) == {"a": 1, "b": ("x", "z"), "c": {"d": None}}
    assert isinstance(node, Table) and isinstance(node.entries[1].value, List)
    assert [(text, at.line, at.column) for text, at in texts(node)] == [("x", 2, 5), ("z", 2, 10)]
    assert node.entries[2].at == Mark(3, 1)


def test_quoted_text_is_text_whatever_it_looks_like() -> None:
    assert plain(node_of("['no', \"012\", '1e-5']")) == ("no", "012", "1e-5")


def test_a_byte_order_mark_is_no_character() -> None:
    assert plain(node_of(b"\xef\xbb\xbfa: 1")) == {"a": 1}


def test_columns_count_characters() -> None:
    assert first_problem("ä: 'ö'\nü: *x\n").startswith("a.yaml:2:4: the alias *x")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a.yaml:1:1: an empty file"),
        ("# only a comment\n", "a.yaml:1:1: an empty file"),
        ("a: 1\nb: 2\na: 3\n", "a.yaml:3:1: the key 'a' stands twice"),
        ("a: &x 1\n", "a.yaml:1:4: the anchor &x"),
        ("a: 1\nb: *x\n", "a.yaml:2:4: the alias *x"),
        ("a: !!python/object:os.system 1\n", "a.yaml:1:4: the tag tag:yaml.org,2002:python/object:os.system"),
        ("a: !x b\n", "a.yaml:1:4: the tag !x"),
        ("on: 1\n", "a.yaml:1:1: unquoted 'on' means different things to different readers of YAML"),
        ("a: [x, no]\n", "a.yaml:1:8: unquoted 'no' means different things to different readers of YAML"),
        ("a: 1e-5\n", "a.yaml:1:4: unquoted '1e-5' means different things to different readers of YAML"),
        ("1: x\n", "a.yaml:1:1: the key 1 is not text"),
        ("? [a]\n: x\n", "a.yaml:1:3: the key a list is not text"),
        ("a: 1\n---\nb: 2\n", "a.yaml:2:1: a second document"),
        ("a: \x07\n", "a.yaml:1:4: not YAML: a character that YAML does not allow"),
        (b"a: 1\nb: \xff\n", "a.yaml:2:4: byte 0xff is not UTF-8"),
    ],
)
def test_what_is_refused_is_named_with_its_place(text: str | bytes, problem: str) -> None:
    assert first_problem(text).startswith(problem)


@pytest.mark.parametrize(("text", "line"), [("a: *.weight\n", 1), ("a: 1\nb: {layer}.x\n", 2), ("a: 1\nb: [1\n", 3)])
def test_what_is_no_yaml_is_named_with_its_line(text: str, line: int) -> None:
    """The column and the words are the YAML library's, which come in two kinds."""
    found = first_problem(text)
    assert found.startswith(f"a.yaml:{line}:") and ": not YAML: " in found


@pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
@pytest.mark.parametrize(
    "text",
    ['"\\UFFFFFFFF"', 'a: "\\ud800"', "%YAML 9.9\n---\na: 1", "%TAG ! \n", "!%FF a", "- " * 3000, "[" * 3000, "\x07"],
)
def test_both_kinds_of_the_library_let_only_our_errors_out(
    text: str, loader: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_text, "_LOADER", loader)
    assert first_problem(text).startswith("a.yaml:")


def test_limits() -> None:
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert isinstance(node_of(deepest), List)
    assert "nested more than" in first_problem(f"[{deepest}]")
    assert first_problem("[" * 100_000).startswith("a.yaml:1:")
    assert "a rule file of" in first_problem(b"#" * (MAX_BYTES + 1))


def test_laughs_by_the_billion_end_at_the_first_anchor() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    assert first_problem("\n".join(lines)) == "a.yaml:1:5: the anchor &a0"


def test_every_problem_is_listed_once_and_in_order() -> None:
    with pytest.raises(RuleError) as caught:
        node_of("a: no\nb: *x\na: 1\n")
    error = caught.value
    assert isinstance(error, RuleFileError)
    assert [p.place for p in error.problems] == ["a.yaml:1:4", "a.yaml:2:4", "a.yaml:3:1"]
    assert error.seen == "unquoted 'no' means different things to different readers of YAML"
    assert error.file == "a.yaml:1:4"
    assert error.to_json()["hint"] is None
    assert all(p.seen in str(error) for p in error.problems)


def test_a_long_list_of_problems_is_cut() -> None:
    with pytest.raises(RuleFileError) as caught:
        node_of("\n".join(f"k{i}: no" for i in range(70)))
    assert len(caught.value.problems) == 70
    assert str(caught.value).endswith("and 20 more problems")


def test_words_for_nodes() -> None:
    assert [show(node_of(text)) for text in ("[]", "{}", "x")] == ["a list", "a mapping", "'x'"]
    assert isinstance(node_of("x"), Scalar)
