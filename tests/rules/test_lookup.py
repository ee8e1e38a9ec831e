from pathlib import Path

import pytest

from tests.rules.plugged import install
from weightloom.engine.errors import RuleError, UsageError
from weightloom.engine.mapping.claims import Drop
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.mapping.scope import ModuleNode, Registered, scoped_rules
from weightloom.rules.document import SubModel
from weightloom.rules.lookup import Registry, registry

ALPHA = """\
schema: 1
family: alpha
applies_to: {model_types: [alpha], class_names: [AlphaModel]}
aliases: {model_types: [alfa]}
base_model_prefix: body
tree: [{path: eyes, config: vision_config}]
layouts: {hf: {rules: [{drop: a}]}, mlx: {rules: [{drop: m}]}}
"""
BETA = "schema: 1\nfamily: beta\napplies_to: {model_types: [beta]}\nextends: alpha\n"
OTHER = "schema: 1\nfamily: other\napplies_to: {model_types: [alfa]}\nlayouts: {gguf: {rules: []}}\n"
BROKEN_RULES = "schema: 1\nfamily: broken\napplies_to: {model_types: [broken]}\nlayouts: {hf: {rules: [{drop: '('}]}}\n"
BROKEN_HEAD = "schema: 1\nfamily: no\nlayouts:\n  hf: {rules: []}\n"


def registry_of(folder: Path, **files: str) -> Registry:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return Registry([folder / f"{name}.yaml" for name in files])


def test_it_is_a_lookup(tmp_path: Path) -> None:
    found = registry_of(tmp_path, alpha=ALPHA, beta=BETA)
    assert isinstance(found, Registered)
    assert found("alpha") == found("alfa") == found("AlphaModel") == RuleSet([Drop("a")], "body")
    assert found("beta") == RuleSet([Drop("a")], "body")
    assert found("gamma") is None
    assert found("alpha") is not None and found.registered("alpha") is None


def test_what_it_knows(tmp_path: Path) -> None:
    found = registry_of(tmp_path, alpha=ALPHA, beta=BETA)
    assert found.identifiers() == ("AlphaModel", "alfa", "alpha", "beta")
    assert found.families() == ("alpha", "beta")
    assert found.layouts("beta") == ("hf", "mlx")
    assert found.tree("beta") == (SubModel("eyes", None, "vision_config"),)
    assert found.tree("gamma") == ()
    assert found.base_model_prefix("beta") == "body"
    assert found.base_model_prefix("gamma") == ""
    assert found.rules("AlphaModel", "mlx") == RuleSet([Drop("m")], "body")


def test_an_empty_tree_is_not_that_of_the_extended_file(tmp_path: Path) -> None:
    found = registry_of(tmp_path, alpha=ALPHA, beta=BETA + "tree: []\n")
    assert found.tree("beta") == ()


PART = "schema: 1\nfamily: {0}\napplies_to: {{class_names: [{0}]}}\nparts: {{eye: {0}}}\nextends: alpha\n"


def test_the_class_of_a_part(tmp_path: Path) -> None:
    found = registry_of(tmp_path, alpha=ALPHA, eye=PART.format("Eye"))
    assert found.part_class("eye") == "Eye"
    assert found.part_class("alpha") is None
    with pytest.raises(RuleError, match="'eye' is claimed by"):
        registry_of(tmp_path, alpha=ALPHA, eye=PART.format("Eye"), iris=PART.format("Iris")).part_class("eye")


def test_a_file_without_the_usual_layout_is_no_hit(tmp_path: Path) -> None:
    assert registry_of(tmp_path, other=OTHER)("alfa") is None


def test_an_unknown_name_has_the_nearest_named(tmp_path: Path) -> None:
    found = registry_of(tmp_path, alpha=ALPHA)
    with pytest.raises(UsageError, match="no rules for 'alpah'") as caught:
        found.rules("alpah")
    assert caught.value.hint == "did you mean 'alpha'?"
    with pytest.raises(UsageError) as caught:
        found.rules("zzz")
    assert caught.value.hint == "known families: alpha"
    with pytest.raises(UsageError, match="alpha has no layout 'gguf'"):
        found.rules("alpha", "gguf")


def test_two_files_for_one_identifier(tmp_path: Path) -> None:
    found = registry_of(tmp_path, alpha=ALPHA, other=OTHER)
    assert found("alpha") is not None
    with pytest.raises(RuleError, match=r"'alfa' is claimed by .*alpha\.yaml and by .*other\.yaml"):
        found("alfa")
    found.register("alfa", [Drop("mine")], overwrite=True)
    assert found("alfa") == RuleSet([Drop("mine")])


def test_registering(tmp_path: Path) -> None:
    found = registry_of(tmp_path, alpha=ALPHA)
    mine = RuleSet([Drop("mine")], "trunk")
    found.register("my_type", mine)
    assert found("my_type") == found.registered("my_type") == found.rules("my_type") == mine
    assert found.base_model_prefix("my_type") == "trunk"
    assert found.layouts("my_type") == ("hf",)
    assert "my_type" in found.identifiers()
    with pytest.raises(RuleError, match="'my_type' is taken by rules registered before"):
        found.register("my_type", mine)
    with pytest.raises(RuleError, match=r"'alpha' is taken by .*alpha\.yaml"):
        found.register("alpha", mine)
    found.register("alpha", mine, overwrite=True)
    assert found("alpha") == mine
    assert found.rules("alpha", "mlx") == RuleSet([Drop("m")], "body")


def test_each_instance_has_its_own_registrations(tmp_path: Path) -> None:
    one, two = registry_of(tmp_path, alpha=ALPHA), registry_of(tmp_path, alpha=ALPHA)
    one.register("x", [])
    assert two("x") is None


def test_a_broken_file_hurts_only_who_asks_for_it(tmp_path: Path) -> None:
    found = registry_of(tmp_path, alpha=ALPHA, broken=BROKEN_RULES, head=BROKEN_HEAD)
    assert found("alpha") is not None
    assert [problem.file for problem in found.problems] == [f"{tmp_path / 'head.yaml'}:2:9"]
    with pytest.raises(RuleError, match="not a regular expression"):
        found("broken")
    with pytest.raises(UsageError, match=r"no rules for 'no' \(not read: unquoted 'no'"):
        found.rules("no")


def test_files_of_other_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "a": "more_rules",
        "b": "more_rules.code:paths",
        "c": "no_such_module",
        "d": "more_rules.code:number",
        "e": "more_rules.code:gone",
    }
    code = "import pathlib\nhere = pathlib.Path(__file__).parent\ndef paths(): return [here / 'deep' / 'beta.yaml']\n"
    code += "number = 3\ngone = '/no/such/folder'\n"
    files = {"more_rules/__init__.py": "", "more_rules/alpha.yaml": ALPHA, "more_rules/deep/beta.yaml": BETA}
    install(tmp_path, "more", {"weightloom.rules": points}, {**files, "more_rules/code.py": code})
    monkeypatch.syspath_prepend(tmp_path)
    found = Registry()
    assert found("alpha") == found("beta") == RuleSet([Drop("a")], "body")
    assert found("llama") is not None
    assert [problem.seen.split(": ", 1)[1] for problem in found.problems] == [
        "ModuleNotFoundError: No module named 'no_such_module'",
        "it gives 3",
        "/no/such/folder is not there",
    ]
    assert found.problems[0].seen.startswith("the rules that more offers as 'c' (no_such_module) cannot be used")


def test_the_walk_through_a_model_takes_it_as_it_is() -> None:
    nodes = [
        ModuleNode("", "LlavaForConditionalGeneration", "llava"),
        ModuleNode("model", "LlavaModel", "llava"),
        ModuleNode("model.language_model", "LlamaModel", "llama"),
    ]
    rules = scoped_rules(nodes, registry, "model")
    files = [rule.place.file.rsplit("/", 1)[1] for rule in rules if rule.place]
    assert list(dict.fromkeys(files)) == [
        "multimodal_wrapper.yaml",
        "llava.yaml",
        "llava_model.yaml",
        "llama.yaml",
        "legacy.yaml",
    ]
    assert {str(rule.scope) for rule in rules if rule.scope} == {"model", "model.language_model"}


def test_a_class_from_outside_inherits_nothing_unless_registered(tmp_path: Path) -> None:
    found = registry_of(tmp_path, alpha=ALPHA)
    nodes = [ModuleNode("", "MyModel", "alpha", native=False)]
    assert scoped_rules(nodes, found) == RuleSet()
    found.register("MyModel", [Drop("mine")])
    assert scoped_rules(nodes, found) == RuleSet([Drop("mine")])
