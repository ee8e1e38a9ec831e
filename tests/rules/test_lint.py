from pathlib import Path

import pytest

from tests.rules.write import read, with_rules
from weightloom.engine.errors import StorageError
from weightloom.engine.ops import ConversionOp
from weightloom.engine.ops.chain import Chain
from weightloom.rules import Finding, Ops, Registry, lint_rules
from weightloom.rules.linting.index import PatternIndex
from weightloom.rules.linting.lint import lint_file
from weightloom.rules.parse import parse_rules


def codes(rules: str) -> list[str]:
    """Give the codes found in a layout of these rules."""
    return [finding.code for finding in lint_file(read(with_rules(rules)))]


MERGE, JOIN, CHUNK = "{MergeModulelist: {dim: 0}}", "{Concatenate: {dim: 1}}", "{Chunk: {dim: 0}}"
ROPE = "{PermuteForRope: {heads: 1, permute_layer_names: [b]}}"


def convert(source: str, target: str, *ops: str, when: str | None = None) -> str:
    """Give a converter as one line of YAML."""
    rule = f"convert: {{from: {source}, to: {target}, ops: [{', '.join(ops)}]}}"
    return f"- {rule}" if when is None else f"- {{{rule}, when: {when}}}"


def rename(source: str, target: str, **options: str) -> str:
    """Give a rename as one line of YAML."""
    rule = f"rename: {{from: {source}, to: {target}}}"
    return f"- {{{', '.join([rule, *(f'{key}: {value}' for key, value in options.items())])}}}"


def together(*rules: str) -> str:
    return "\n".join(rules)


@pytest.mark.parametrize(
    ("code", "firing", "silent"),
    [
        ("WL101", rename("'a.b'", "c"), rename(r"'a\.b'", "c.d")),
        ("WL101", r"- drop: ['layers.(\d+)\.x']", r"- drop: ['layers\.(.+)\.x', 'a.*b', 'a*.b']"),
        ("WL101", "- tie: {parameter: 'a(?=.b)', source: c}", r"- tie: {parameter: 'a(?=\.b)', source: c}"),
        ("WL102", "- drop: ['a^b']", r"- drop: ['^b', '(^|model\.)b', '(?<=^)b', 'a?^b', 'x|^b']"),
        ("WL102", "- drop: ['a$b']", r"- drop: ['a$', '(a$|b)', 'a$b?', '(a$)(?!\.b)']"),
        ("WL104", together(rename("a", "b"), rename("[x, a]", "c")), rename("a", "b")),
        (
            "WL104",
            together(rename("a", "b", when="p"), rename("a", "c", when="p")),
            together(rename("a", "b", when="p"), rename("a", "c", when="not p"), rename("a", "d")),
        ),
        ("WL104", "- drop: [a]\n- drop: [b, a]", "- drop: [a]\n- keep_dtype: [a]"),
        (
            "WL104",
            "- tie: {parameter: a, source: b}\n- tie: {parameter: a, source: b}",
            "- tie: {parameter: a, source: b}\n- tie: {parameter: a, source: c}",
        ),
        (
            "WL105",
            together(convert(r"'a\.*.w'", "a.w", MERGE), convert(r"'a\.*.w'", "b", MERGE)),
            together(convert(r"'a\.*.w'", "a.w", MERGE), convert(r"'b\.*.w'", "b", MERGE)),
        ),
        (
            "WL105",
            together(convert(r"'mlp\.up'", "[a, b]", CHUNK), convert("up", "[c, d]", CHUNK)),
            together(convert("up", "[a, b]", CHUNK, when="p"), convert("up", "[c, d]", CHUNK, when="not p")),
        ),
        (
            "WL105",
            together(convert("up", "[a, b]", CHUNK), convert(r"'mlp\.up'", "[c, d]", CHUNK)),
            together(convert("up", "[a, b]", CHUNK), convert("up_scale", "[c, d]", CHUNK)),
        ),
        (
            "WL106",
            together(rename("old", "mlp.q"), convert("qk", "[q, k]", CHUNK)),
            together(rename("old", "mlp.qk"), convert("qk", "[q, k]", CHUNK)),
        ),
        (
            "WL106",
            together(convert("qk", "[q, k]", CHUNK), rename(r"'(\d+)\.old'", r"'\1.k'")),
            together(convert("qk", "[q, k]", CHUNK), rename(r"'(\d+)\.old'", r"'\1.k_norm'")),
        ),
        (
            "WL107",
            together(convert("qk", "[q, k]", CHUNK), rename("old", "mlp.qk")),
            together(rename("old", "mlp.qk"), convert("qk", "[q, k]", CHUNK)),
        ),
        ("WL108", "- drop: ['(a+)+b']", r"- drop: ['(\.\w+)+b', '(a+){2}', 'a+b+']"),
        ("WL108", "- drop: ['(.*)*']", r"- drop: ['(?:\d+\.)+x']"),
        ("WL108", r"- drop: ['(\w+\w)*x']", r"- drop: ['(\w\.)*x']"),
        ("WL108", "- drop: ['(a|a)*b']", "- drop: ['(a|b)*c', '(a|ab)c']"),
        ("WL108", r"- drop: ['([a-z]|\w)+b']", r"- drop: ['([a-z]|\d)+\.b']"),
        ("WL109", convert("[a, b]", "[c, d]", CHUNK), convert("a", "[c, d]", CHUNK)),
        (
            "WL109",
            convert("a", "b", "{Transpose: {dim0: 7}}"),
            convert("a", "b", "{Transpose: {dim0: 3, check_dims: true}}"),
        ),
        ("WL109", convert("[a, b]", "c", MERGE), convert(r"['x\.*.a', 'x\.*.b']", "c", MERGE, JOIN)),
        (
            "WL109",
            convert("a", "b", "{SplitModulelist: {dim: 0}}"),
            convert("a", "'b.*.w'", "{SplitModulelist: {dim: 0}}"),
        ),
        (
            "WL109",
            convert("a", "[b, c]", "{Split: {sizes: [4]}}"),
            convert("a", "[b, c]", "{Split: {sizes: ['n * text_config.size', 3]}}", ROPE),
        ),
        ("WL110", rename("'a[bc]'", "x"), rename("'a[bc]'", "x", always="false")),
        (
            "WL110",
            r"- index: {from: 'a\.{i}\.{j}', to: 'b.{i}'}",
            r"- index: {from: 'a\.{i}\.{j}', to: 'b.{i}.{j}'}",
        ),
        ("WL110", rename("'(a|b)'", "x"), rename("'(a|b)'", "x", fidelity="lossy")),
    ],
)
def test_each_code_has_a_firing_and_a_silent_example(code: str, firing: str, silent: str) -> None:
    assert set(codes(firing)) == {code}
    assert codes(silent) == []


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("WL001", "a: *x\n"),
        ("WL001", "schema: 1\nschema: 1\nfamily: a\nlayouts: {hf: {rules: []}}\n"),
        ("WL002", "schema: 1\nfamily: a\n"),
        ("WL003", "schema: 1\nfamily: a\nlayouts: {hf: {rules: [{drop: '('}]}}\n"),
        ("WL003", with_rules("- convert: {from: a, to: b, ops: [{Nope: {}}]}")),
        ("WL103", with_rules(r"- rename: {from: '(a)\.b', to: '\2'}")),
        ("WL103", with_rules(r"- group: [{from: a, to: b}, {from: c, to: '\1'}]")),
        ("WL103", with_rules(r"- tie: {parameter: a, source: '\1'}")),
    ],
)
def test_what_stops_a_file_from_being_read_is_found_too(code: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    assert code in {finding.code for finding in lint_rules(file)}


def test_a_finding_has_its_place_and_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(with_rules("- rename:\n    from: ['a', 'b.c']\n    to: d\n- drop: ['x']"))
    found = lint_rules(file)
    said = "pattern 'b.c': the dot at character 2 matches any character; write '\\.' for a dot"
    assert found == [Finding(str(file), 7, 23, "WL101", said)]
    assert str(found[0]) == f"{file}:7:23: WL101 {said}"


def test_findings_are_in_the_order_of_lines() -> None:
    found = lint_file(read(with_rules("- drop: ['(a+)+', 'a.b']\n- rename: {from: 'a[bc]', to: x}\n- drop: ['a^']")))
    assert [(finding.line, finding.code) for finding in found] == [
        (6, "WL108"), (6, "WL101"), (7, "WL110"), (8, "WL102"),
    ]  # fmt: skip


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        lint_rules(tmp_path / "none.yaml")


class Fails(ConversionOp):
    def lower(self, chain: Chain) -> None:
        raise KeyError("oops")


def test_another_package_s_op_may_fail_in_any_way() -> None:
    ops = Ops({"Fails": Fails})
    file = parse_rules(with_rules("- convert: {from: a, to: b, ops: [{Fails: {}}]}").encode(), "a.yaml", ops)
    found = lint_file(file)
    assert {finding.code for finding in found} == {"WL109", "WL110"}
    assert "KeyError: 'oops'" in " ".join(finding.message for finding in found)


@pytest.mark.parametrize(
    ("code", "rules", "line", "column"),
    [
        ("WL101", "- drop: ['x']\n- rename:\n    from: ['a', 'b.c']\n    to: d", 8, 23),
        ("WL102", "- drop: ['x']\n- drop: ['y', 'a^b']", 7, 21),
        ("WL104", "- drop: ['x']\n- drop: ['y', 'x']", 7, 21),
        ("WL105", together(convert("up", "[a, b]", CHUNK), convert("up", "[c, d]", CHUNK)), 7, 25),
        ("WL106", together(rename("old", "mlp.q"), convert("qk", "[q, k]", CHUNK)), 6, 9),
        ("WL107", together(convert("qk", "[q, k]", CHUNK), rename("old", "mlp.qk")), 7, 9),
        ("WL108", "- drop: ['x', '(a+)+b']", 6, 21),
        ("WL109", "- drop: ['x']\n" + convert("a", "b", "{Transpose: {dim0: 7}}"), 7, 9),
        ("WL110", "- drop: ['x']\n" + rename("'a[bc]'", "x"), 7, 9),
    ],
)
def test_each_finding_has_its_place(code: str, rules: str, line: int, column: int) -> None:
    (found,) = lint_file(read(with_rules(rules)))
    assert (found.code, found.line, found.column) == (code, line, column)


def test_a_group_without_a_capture_has_its_place(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(with_rules(r"- drop: ['x']" "\n" r"- rename: {from: '(a)\.b', to: '\2'}"))
    (found,) = lint_rules(file)
    assert (found.file, found.line, found.code) == (str(file), 7, "WL103")


@pytest.mark.parametrize(
    "rules",
    [
        together(rename(r"'^cls\.dense\.'", "'head.dense.'"), convert(r"'^cls\.dense\.kernel'", "b", CHUNK)),
        together(convert(r"'^cls\.dense\.kernel'", "b", CHUNK), rename(r"'^cls\.dense\.'", "'head.dense.'")),
        together(rename("old", "new"), rename(r"'old\.(a|b)\d?'", r"'x.\1'", fidelity="lossy")),
        together(rename("a", "b"), rename("b", "c"), rename(r"'a\.x'", "d")),
    ],
)
def test_a_rule_that_earlier_renames_starve(rules: str) -> None:
    (found,) = lint_file(read(with_rules(rules)))
    assert found.code == "WL104"
    assert "renames all that it matches" in found.message


@pytest.mark.parametrize(
    "rules",
    [
        together(rename(r"'^old\.'", "'new.'"), rename("old", "x")),
        together(rename(r"'old\.a'", "new"), rename(r"'old\.(a|b)'", r"'x.\1'", fidelity="lossy")),
        together(rename(r"'old(?=\.7)'", "new"), rename(r"'old\.(\d+)'", r"'x.\1'")),
        together(rename(r"'old$'", "new", fidelity="lossy"), rename(r"'old(\.weight)?'", "x", fidelity="lossy")),
        together(rename("old", "new", when="p"), rename(r"'old\.a'", "x")),
        together(rename(r"'old\.a'", "x"), rename("old", "new")),
        together(rename("old", "old_norm"), rename(r"'ol'", "x")),
    ],
)
def test_a_rule_that_some_names_reach(rules: str) -> None:
    assert codes(rules) == []


def test_many_rules_are_compared_by_what_they_have_in_common() -> None:
    index = PatternIndex([r"^model\.layers\.(\d+)\.mlp", r"(a|b)", "norm", r"(?:experts)\.w1", r"x*"])
    assert index.candidates("model.layers.3.mlp") == [0, 1, 4]
    assert index.candidates("experts.w1.norm") == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("above", "own", "code"),
    [
        (rename("a", "b"), rename("a", "c"), "WL104"),
        (rename("a", "b"), rename(r"'a\.x'", "c"), "WL104"),
        (convert("up", "[a, b]", CHUNK), convert(r"'mlp\.up'", "[c, d]", CHUNK), "WL105"),
        (convert("qk", "[q, k]", CHUNK), rename("old", "mlp.q"), "WL106"),
        (rename("old", "mlp.q"), convert("qk", "[q, k]", CHUNK), "WL106"),
        (convert("qk", "[q, k]", CHUNK), rename("old", "mlp.qk"), "WL107"),
        (rename("a", "b"), rename("c", "d"), None),
        (together(rename("a", "b"), rename("a", "b")), rename("c", "d"), None),
    ],
)
def test_rules_that_a_layout_extends_are_earlier_ones(above: str, own: str, code: str | None, tmp_path: Path) -> None:
    other, file = tmp_path / "other.yaml", tmp_path / "mine.yaml"
    other.write_text(with_rules(above).replace("family: a", "family: other"))
    file.write_text(with_rules(own).replace("    rules:", "    extends: other\n    rules:"))
    found = lint_rules(file, find=Registry([other]).family)
    assert [(each.file, each.code) for each in found] == ([(str(file), code)] if code else [])
    assert not found or found[0].line == 7


def test_extends_that_leads_nowhere(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(with_rules("- drop: [x]").replace("    rules:", "    extends: lama\n    rules:"))
    (found,) = lint_rules(file)
    assert (found.line, found.code) == (5, "WL111")
    assert "no rules for 'lama'" in found.message
