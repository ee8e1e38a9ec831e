import pytest

from tests.rules.write import read, said_of, with_rules
from weightloom.engine.errors import StorageError
from weightloom.engine.mapping.claims import Drop, KeepDtype, Tie
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.drop_layers import DropLayers
from weightloom.engine.mapping.index_map import IndexMap
from weightloom.engine.mapping.prefix import PrefixChange
from weightloom.engine.mapping.rename_group import RenameGroup
from weightloom.engine.mapping.renaming import WeightRenaming
from weightloom.engine.mapping.rule import Place, Rule
from weightloom.engine.ops import Chunk, Concatenate, MergeModulelist, PermuteForRope, Split
from weightloom.rules.document import Head, Identifiers, Reference, SubModel
from weightloom.rules.parse import parse_head, read_bytes

EVERY_RULE = r"""
- rename: {from: '\.block_sparse_moe\.', to: '.mlp.'}
  why: 'as others'
- rename: {from: ['a\.x', 'a\.y'], to: 'b'}
  always: false
- prefix: {add: x}
- prefix: {remove: old, below: model}
  always: true
- group: [{from: 'norm0', to: 'norm1'}, {from: 'norm1', to: 'norm2'}]
- index: {from: 'layers\.{2i}', to: 'layers.{i}'}
- drop: ['\.inv_freq']
- drop: '\.position_ids'
- drop_layers: {below: '^model\.layers', first: num_hidden_layers, count: num_nextn_predict_layers}
- drop_layers: {below: 'layers', first: 'depth - 2', count: '2', parts: '(k|v)'}
- tie: {parameter: '^lm_head\.(weight)', source: 'model.embed_tokens.\1'}
  when: 'tie_word_embeddings'
- keep_dtype: ['router']
- convert:
    from: ['\.experts\.*.w1\.weight', '\.experts\.*.w3\.weight']
    to: '\.experts\.gate_up_proj'
    ops: [{MergeModulelist: {dim: 0}}, {Concatenate: {dim: 1}}]
  optional: ['\.experts\.*.w3\.weight']
- convert:
    from: 'qkv'
    to: ['q', 'k', 'v']
    ops: [{Split: {sizes: [8, 'hidden_size', 4]}}, {PermuteForRope: {heads: {q: 4}, permute_layer_names: [q]}}]
  optional: true
  fidelity: lossy
- convert: {from: 'a', to: ['b', 'c'], ops: [{Chunk: {dim: -1}}]}
"""


def hand_built() -> list[Rule]:
    w1, w3 = r"\.experts\.*.w1\.weight", r"\.experts\.*.w3\.weight"
    rope = PermuteForRope(heads={"q": 4}, permute_layer_names=["q"])
    return [
        WeightRenaming(r"\.block_sparse_moe\.", ".mlp.", why="as others"),
        WeightRenaming([r"a\.x", r"a\.y"], "b", always=False),
        PrefixChange(prefix_to_add="x"),
        PrefixChange(prefix_to_remove="old", model_prefix="model", always=True),
        RenameGroup(["norm0", "norm1"], ["norm1", "norm2"]),
        IndexMap(r"layers\.{2i}", "layers.{i}"),
        Drop(r"\.inv_freq"),
        Drop(r"\.position_ids"),
        DropLayers(r"^model\.layers", "num_hidden_layers", "num_nextn_predict_layers"),
        DropLayers("layers", "depth - 2", "2", "(k|v)"),
        Tie(r"^lm_head\.(weight)", r"model.embed_tokens.\1", when="tie_word_embeddings"),
        KeepDtype("router"),
        WeightConverter([w1, w3], r"\.experts\.gate_up_proj", [MergeModulelist(), Concatenate(1)], optional=[w3]),
        WeightConverter("qkv", ["q", "k", "v"], [Split(0, (8, "hidden_size", 4)), rope], optional=True,
                        fidelity="lossy"),
        WeightConverter("a", ["b", "c"], [Chunk(-1)]),
    ]  # fmt: skip


def test_every_kind_of_rule_is_what_its_constructor_makes() -> None:
    layout = read(with_rules(EVERY_RULE)).layout("hf")
    assert layout is not None
    assert list(layout.rules) == hand_built()


def test_rules_know_their_place() -> None:
    layout = read(with_rules(EVERY_RULE)).layout("hf")
    assert layout is not None
    assert [rule.place for rule in layout.rules[:3]] == [Place("a.yaml", line, 9) for line in (6, 8, 10)]
    assert layout.items[1].mark_of(r"a\.y").line == 8
    assert layout.items[1].mark_of(r"a\.y").column == 33


HEAD = """\
schema: 1
family: llava
applies_to: {model_types: [llava], class_names: []}
aliases: {model_types: [aria], class_names: [AriaModel]}
base_model_prefix: model
tree:
  - {path: model, class: LlavaModel}
  - {path: model.language_model, config: text_config}
parts: {aria: AriaModel}
extends: other/hf
"""


def test_the_head() -> None:
    wanted = Head(
        "llava",
        Identifiers(("llava",)),
        Identifiers(("aria",), ("AriaModel",)),
        "model",
        (SubModel("model", "LlavaModel"), SubModel("model.language_model", None, "text_config")),
        Reference("other", "hf"),
        {"aria": "AriaModel"},
    )
    assert read(HEAD).head == wanted
    assert read(HEAD).layouts == ()
    assert wanted.identifiers == ("llava", "aria", "AriaModel")


def test_the_head_is_read_without_the_layouts() -> None:
    text = HEAD + "layouts:\n  hf: {rules: [{nonsense: *x}]}\n"
    assert parse_head(text.encode(), "a.yaml") == read(HEAD).head
    assert said_of(text)


LAYOUT = "layouts: {hf: {rules: []}}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "schema: 1\nfamly: a\n" + LAYOUT,
            ["1:1: the file lacks 'family'", "2:1: the file has an unknown key 'famly'"],
        ),
        ("schema: 2\nfamily: a\n" + LAYOUT, ["1:9: schema is 2"]),
        ("schema: true\nfamily: a\n" + LAYOUT, ["1:9: schema is True"]),
        ("schema: 1\nfamily: 7\n" + LAYOUT, ["2:9: family is 7"]),
        ("schema: 1\nfamily: 'a b'\n" + LAYOUT, ["2:9: family is 'a b'"]),
        ("[a]\n", ["1:1: the file is a list", "1:1: the file lacks 'layouts'"]),
        ("schema: 1\nfamily: a\n", ["1:1: the file lacks 'layouts'"]),
        ("schema: 1\nfamily: a\nlayouts: []\n", ["3:10: layouts is a list"]),
        ("schema: 1\nfamily: a\nlayouts: {}\n", ["3:10: layouts is empty"]),
        ("schema: 1\nfamily: a\nlayouts: {'a/b': {rules: []}}\n", ["3:11: a layout named 'a/b'"]),
        ("schema: 1\nfamily: a\nlayouts: {hf: {}}\n", ["3:15: layout 'hf' has neither rules nor extends"]),
        ("schema: 1\nfamily: a\nlayouts: {hf: {rules: {}}}\n", ["3:23: rules is a mapping"]),
        ("schema: 1\n" + LAYOUT + "family: a\n", ["3:1: 'family' stands after `layouts`"]),
        ("schema: 1\nfamily: a\nextends: a/b/c\n" + LAYOUT, ["3:10: extends is 'a/b/c'"]),
        ("schema: 1\nfamily: a\ntree: [{path: x}]\n" + LAYOUT, ["3:8: a sub-model without class and config"]),
        (
            "schema: 1\nfamily: a\ntree: [{path: x, class: A}, {path: x, class: B}]\n" + LAYOUT,
            ["3:8: two sub-models at 'x'", "3:29: two sub-models at 'x'"],
        ),
        ("schema: 1\nfamily: a\nparts: [x]\n" + LAYOUT, ["3:8: parts is a list"]),
        ("schema: 1\nfamily: a\nparts: {x: 1}\n" + LAYOUT, ["3:12: parts.x is 1"]),
        ("schema: 1\nfamily: a\nparts: {x: X}\n" + LAYOUT, ["1:1: parts.x is 'X'"]),
        (
            "schema: 1\nfamily: a\napplies_to: {model_types: a}\naliases: {class_name: [B]}\n" + LAYOUT,
            ["3:27: applies_to.model_types is 'a'", "4:11: aliases has an unknown key 'class_name'"],
        ),
        (
            "schema: 1\nfamily: a\napplies_to: {model_types: [a]}\naliases: {model_types: [a]}\n" + LAYOUT,
            ["1:1: 'a' stands twice in applies_to and aliases"],
        ),
    ],
)
def test_a_wrong_file(text: str, said: list[str]) -> None:
    assert said_of(text) == said


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("- x", ["6:9: a rule is 'x'"]),
        ("- why: x", ["6:9: a rule that says nothing"]),
        ("- {rename: {from: a, to: b}, drop: [c]}", ["6:9: a rule with rename and drop"]),
        ("- renam: {from: a, to: b}", ["6:9: a rule has an unknown key 'renam'", "6:9: a rule that says nothing"]),
        ("- rename: {from: a}", ["6:17: rename lacks 'to'"]),
        ("- rename: {from: a, to: [b]}", ["6:31: to is a list"]),
        ("- rename: {from: [], to: b}", ["6:24: from is an empty list"]),
        ("- rename: {from: 1, to: b}", ["6:24: from is 1"]),
        ("- rename: {from: 'a', to: 'b', two: c}", ["6:38: rename has an unknown key 'two'"]),
        ("- rename: {from: 'a(', to: b}", ["6:24: source pattern 'a(' is not a regular expression"]),
        (r"- rename: {from: 'a', to: '\1'}", [r"6:33: target pattern '\\1' uses \1, which source 'a'"]),
        ("- rename: {from: a, to: 'b$'}", ["6:31: target pattern 'b$': '$' at character 1"]),
        ("- {rename: {from: a, to: b}, when: 'f(x)'}", ["6:42: Call is not allowed in the expression 'f(x)'"]),
        ("- {rename: {from: a, to: b}, fidelity: exakt}", ["6:46: fidelity is 'exakt'"]),
        ("- {rename: {from: a, to: b}, always: 'true'}", ["6:44: always is 'true'"]),
        ("- {rename: {from: a, to: b}, optional: true}", ["6:46: optional beside rename"]),
        ("- prefix: {add: a, remove: b}", ["6:17: prefix needs one of add and remove"]),
        ("- prefix: {below: b}", ["6:17: prefix needs one of add and remove"]),
        ("- group: {from: a, to: b}", ["6:16: group is a mapping"]),
        ("- group: [{from: a, to: b}, {from: c}]", ["6:35: a rename of a group lacks 'to'"]),
        ("- index: {from: 'a', to: 'b.{i}'}", ["6:16: index map a -> b.{i}"]),
        ("- tie: {parameter: a}", ["6:14: tie lacks 'source'"]),
        ("- convert: {from: a, to: b, ops: []}", ["6:40: ops is a list"]),
        ("- convert: {from: a, to: b, ops: [Chunk]}", ["6:41: an op is 'Chunk'"]),
        ("- convert: {from: a, to: b, ops: [{Chnk: {dim: 0}}]}", ["6:42: unknown op 'Chnk'"]),
        ("- convert: {from: a, to: b, ops: [{Chunk: {dm: 0}}]}", ["6:50: Chunk has no argument 'dm'"]),
        ("- convert: {from: a, to: b, ops: [{Chunk: {dim: a}}]}", ["6:50: Chunk: dim is 'a'"]),
        ("- convert: {from: a, to: b, ops: [{Chunk: {dim: 1e-5}}]}",
         ["6:50: Chunk: dim is '1e-5'", "6:55: unquoted '1e-5' means different things to different readers of YAML"]),
        (r"- {convert: {from: a, to: b, ops: [{Chunk: {}}]}, optional: ['c']}", ["6:68: optional names ['c']"]),
    ],
)  # fmt: skip
def test_a_wrong_rule(rule: str, said: list[str]) -> None:
    found = said_of(with_rules(rule))
    assert [each[: len(start)] for each, start in zip(found, said, strict=True)] == said


def test_a_pattern_has_limits() -> None:
    assert said_of(with_rules(f"- drop: ['{'a' * 501}']"))[0].startswith("6:16: drop has 501 characters")
    assert said_of(with_rules(f"- drop: ['{'(?:' * 21 + ')' * 21}']"))[0].startswith("6:16: drop has 84 characters")


def test_problems_of_all_rules_come_at_once() -> None:
    assert len(said_of(with_rules("- drop: ['(']\n- rename: {from: a}\n- x\n- drop: [fine]"))) == 3


def test_a_file_that_cannot_be_read(tmp_path: object) -> None:
    from pathlib import Path

    with pytest.raises(StorageError, match="cannot read the rule file"):
        read_bytes(Path(str(tmp_path)) / "none.yaml")
