"""Only WeightloomError escapes from the rule reader and the linter, whatever bytes they get; `make laws` tries more."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weightloom.engine.errors import WeightloomError
from weightloom.engine.mapping.patterns import compile_source
from weightloom.rules.extending import layout_names, layout_rules
from weightloom.rules.linting.examples import example
from weightloom.rules.linting.lint import lint_file
from weightloom.rules.linting.patterns import pattern_complaints
from weightloom.rules.lookup import Registry
from weightloom.rules.parse import parse_head, parse_rules
from weightloom.rules.problems import RuleFileError
from weightloom.rules.sources import SHIPPED

SHIPPED_FILES = [path.read_bytes() for path in sorted(SHIPPED.glob("*.yaml"))]
LOOKUP = Registry([SHIPPED / "llama.yaml"])
fuzz = settings(
    max_examples=max(200, settings().max_examples),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def survives(data: bytes) -> None:
    """Read, resolve and lint; let only the errors that are meant to come out pass."""
    try:
        parse_head(data, "fuzz.yaml")
        file = parse_rules(data, "fuzz.yaml")
    except RuleFileError as error:
        assert error.problems
        assert all(problem.mark.line > 0 and problem.mark.column > 0 for problem in error.problems)
        return
    lint_file(file)
    try:
        for layout in layout_names(file, LOOKUP.family):
            layout_rules(file, layout, LOOKUP.family)
    except WeightloomError:
        return


@fuzz
@given(st.binary(max_size=200))
def test_bytes(data: bytes) -> None:
    survives(data)


PIECES = [
    *("schema: 1\n", "family: a\n", "layouts:\n", "  hf:\n", "    rules:\n", "      - ", "rename: ", "convert: ", "- "),
    *("{", "}", "[", "]", ": ", ", ", "'", '"', "&a ", "*a", "!!python/object:os.system ", "|\n", ">\n", "#", "\t"),
    *("from: ", "to: ", "ops: ", "{Chunk: {dim: 0}}", "'a\\.(\\d+)'", "'\\1'", "on", "1e-5", "012", "<<: ", "? "),
    *("---\n", "...\n", "%YAML 1.2\n", "\ufeff", "\x00", "\x85", "\u2028", "~", "null", "2001-01-01", "=", "@", "`"),
]


@fuzz
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_pieces_of_yaml(text: str) -> None:
    survives(text.encode("utf-8", "surrogatepass"))


@fuzz
@given(st.data())
def test_shipped_files_with_bytes_changed(data: st.DataObject) -> None:
    text = bytearray(data.draw(st.sampled_from(SHIPPED_FILES)))
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.sampled_from((0, 1, 2, 30))))
        new = data.draw(st.one_of(st.binary(max_size=3), st.sampled_from(PIECES).map(lambda p: p.encode())))
        text[start:end] = new
    survives(bytes(text))


PATTERN_PIECES = [
    *("a", "weight", "7", "\\.", ".", "*.", "*", "+", "?", "(", ")", "(?:", "(?=", "(?!", "(?<!", "(?P<n>", "(?>", "|"),
    *("^", "$", "\\1", "\\2", "\\d", "\\w", "\\b", "\\p{L}", "\\L<x>", "\\N{DASH}", "\\x", "\\u12", "[", "]", "[^a-z]"),
    *(
        "{2}",
        "{2,",
        "{,}",
        "{2i+1}",
        "{i}",
        "{0i}",
        "{9}{9}",
        "(\\d+)",
        "(.+)",
        "(a+)+",
        "(?R)",
        "(?1)",
        "{e<=1}",
        "\\g<1>",
    ),
]
GOOD_PATTERNS = [
    "a\\.b",
    "x*.w",
    "(\\d+)\\.w",
    "^m\\.(a|b)",
    "(a+)+b",
    "(?!k)w",
    "layers\\.{2i}",
    "\\1",
    "a$b",
    "w.v",
    ".w",
]
wild_pattern = st.lists(st.sampled_from(PATTERN_PIECES), max_size=8).map("".join)
pattern_text = st.one_of(st.sampled_from(GOOD_PATTERNS), st.sampled_from(GOOD_PATTERNS), wild_pattern)
value = st.one_of(pattern_text, st.integers(-3, 99), st.booleans(), st.none(), st.lists(pattern_text, max_size=3))
op_name = st.sampled_from(["Chunk", "Split", "Concatenate", "MergeModulelist", "Transpose", "PermuteForRope", "Nope"])
argument = st.sampled_from(["dim", "sizes", "dim0", "heads", "num_shards_attribute", "inverse", "x"])
number = st.one_of(st.integers(-9, 9), st.sampled_from(["hidden_size", "a * b", "a +", "targets", "((", "1 // 0"]))
arguments = st.dictionaries(argument, st.one_of(number, value, st.lists(number, max_size=3)), max_size=2)
operation = st.dictionaries(op_name, arguments, min_size=1, max_size=1)
maybe_list = st.one_of(pattern_text, st.lists(pattern_text, min_size=1, max_size=3))


def table(**entries: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries(entries)


one_rule = st.one_of(
    table(rename=table(**{"from": maybe_list, "to": pattern_text})),
    table(prefix=st.dictionaries(st.sampled_from(["add", "remove", "below"]), pattern_text, max_size=2)),
    table(group=st.lists(table(**{"from": pattern_text, "to": pattern_text}), max_size=3)),
    table(index=table(**{"from": pattern_text, "to": pattern_text})),
    table(drop=maybe_list),
    table(keep_dtype=value),
    table(tie=table(parameter=pattern_text, source=pattern_text)),
    table(convert=table(**{"from": maybe_list, "to": maybe_list, "ops": st.lists(operation, max_size=3)})),
)
good_options = st.fixed_dictionaries(
    {},
    optional={
        "when": st.sampled_from(["tie_word_embeddings", "a.b == 'c'", "f(x)", "a * 2 > 1", "not"]),
        "fidelity": st.sampled_from(["exact", "lossy"]),
        "always": st.booleans(),
        "why": st.just("because"),
    },
)
odd_options = st.dictionaries(st.sampled_from(["when", "fidelity", "always", "optional", "wen"]), value, max_size=2)
options = st.one_of(good_options, good_options, odd_options)
rule_item = st.builds(lambda rule, extra: {**extra, **rule}, one_rule, options)


@fuzz
@given(
    st.lists(rule_item, min_size=1, max_size=3),
    st.sampled_from([None, None, None, "llama", "llama/hf", "a/hf", "b", "a/b/c"]),
)
def test_rules_of_the_right_form(rules: list[dict[str, object]], extends: str | None) -> None:
    layout = {"rules": rules} | ({} if extends is None else {"extends": extends})
    file = {"schema": 1, "family": "a", "layouts": {"hf": layout}}
    survives(yaml.safe_dump(file, sort_keys=False).encode())


@fuzz
@given(wild_pattern)
def test_patterns(text: str) -> None:
    try:
        source = compile_source(text, {}, anchored=False)
    except WeightloomError:
        return
    list(pattern_complaints(text))
    example(source)


@pytest.mark.thorough
def test_a_shipped_file_survives_whole() -> None:
    for data in SHIPPED_FILES:
        survives(data)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    assert Registry([tmp_path]).problems
