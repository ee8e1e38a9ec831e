import pytest

from weightloom.engine.errors import RuleError, UsageError
from weightloom.engine.mapping.claims import Drop
from weightloom.rules.document import RuleFile
from weightloom.rules.extending import base_model_prefix, layout_names, layout_rules
from weightloom.rules.parse import parse_rules

FILES = {
    "base": (
        "base_model_prefix: model\nlayouts:\n  hf: {rules: [{drop: b1}, {drop: b2}]}\n  mlx: {rules: [{drop: bm}]}\n"
    ),
    "child": "extends: base\nlayouts:\n  hf: {rules: [{drop: c1}]}\n  own: {extends: base/mlx, rules: [{drop: o}]}\n",
    "alias": "extends: child\n",
    "fixed": "extends: base/mlx\nlayouts: {hf: {rules: [{drop: f}]}}\n",
    "inner": "layouts:\n  hf: {rules: [{drop: i}]}\n  mlx: {extends: inner/hf, rules: [{drop: m}]}\n",
    "same": "layouts: {hf: {extends: base}}\n",
    "prefixed": "base_model_prefix: ''\nextends: base\n",
    "round1": "extends: round2\nlayouts: {hf: {rules: []}}\n",
    "round2": "extends: round1\nlayouts: {hf: {rules: []}}\n",
    "loop": "layouts:\n  a: {extends: loop/b}\n  b: {extends: loop/a}\n",
    "far1": "layouts: {a: {extends: far2/b}}\n",
    "far2": "layouts: {b: {extends: far1/a}}\n",
    "lost": "layouts: {hf: {extends: nobody}}\n",
    "short": "layouts: {hf: {extends: base/none}}\n",
}


def find(family: str) -> RuleFile:
    if family not in FILES:
        raise UsageError(f"no rules for {family!r}", expected="a family")
    return parse_rules(f"schema: 1\nfamily: {family}\n{FILES[family]}".encode(), f"{family}.yaml")


def dropped(family: str, layout: str = "hf") -> str:
    return " ".join(r.source_patterns[0] for r in layout_rules(find(family), layout, find) if isinstance(r, Drop))


@pytest.mark.parametrize(
    ("family", "layout", "rules"),
    [
        ("base", "hf", "b1 b2"),
        ("child", "hf", "b1 b2 c1"),
        ("child", "mlx", "bm"),
        ("child", "own", "bm o"),
        ("alias", "hf", "b1 b2 c1"),
        ("alias", "own", "bm o"),
        ("fixed", "hf", "bm f"),
        ("inner", "mlx", "i m"),
        ("same", "hf", "b1 b2"),
    ],
)
def test_the_rules_extended_come_first(family: str, layout: str, rules: str) -> None:
    assert dropped(family, layout) == rules


def test_layouts_are_taken_over() -> None:
    assert layout_names(find("child"), find) == ("hf", "own", "mlx")
    assert layout_names(find("alias"), find) == ("hf", "own", "mlx")


def test_the_prefix_is_taken_over_unless_one_is_given() -> None:
    assert base_model_prefix(find("alias"), find) == "model"
    assert base_model_prefix(find("prefixed"), find) == ""
    assert layout_rules(find("child"), "hf", find).base_model_prefix == "model"


def test_rules_keep_the_place_where_they_were_written() -> None:
    places = [str(rule.place) for rule in layout_rules(find("child"), "hf", find)]
    assert places == ["base.yaml:5", "base.yaml:5", "child.yaml:5"]


def test_an_unknown_layout() -> None:
    with pytest.raises(UsageError, match="base has no layout 'mxl'") as caught:
        layout_rules(find("base"), "mxl", find)
    assert caught.value.expected == "one of hf, mlx"
    assert caught.value.hint == "did you mean 'mlx'?"


@pytest.mark.parametrize(
    ("family", "layout", "file", "seen"),
    [
        ("round1", "hf", "round2.yaml:3:10", "extends goes round: round1 -> round2 -> round1"),
        ("loop", "a", "loop.yaml:5:16", "extends goes round: loop/a -> loop/b -> loop/a"),
        ("far1", "a", "far2.yaml:3:24", "extends goes round: far1/a -> far2/b -> far1/a"),
        ("lost", "hf", "lost.yaml:3:25", "extends 'nobody': no rules for 'nobody'"),
        ("short", "hf", "short.yaml:3:25", "extends 'base/none', but base has no layout 'none'"),
    ],
)
def test_where_extends_leads_nowhere(family: str, layout: str, file: str, seen: str) -> None:
    with pytest.raises(RuleError) as caught:
        layout_rules(find(family), layout, find)
    assert (caught.value.file, caught.value.seen) == (file, seen)
