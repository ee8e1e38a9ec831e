"""Plugins by entry point: found without importing, imported alone, clashes and failures reported (C83, C84)."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.plugins.installed import EXAMPLE, install, install_example
from weightloom.engine import Chunk, ConversionOp, RuleSet, WeightConverter
from weightloom.engine.errors import NotInvertible, PluginError
from weightloom.engine.ops.chain import Chain
from weightloom.plugins import Architecture, PluginManager, hookimpl
from weightloom.plugins.architectures import llama
from weightloom.plugins.specs import DEPRECATED, INTERFACE
from weightloom.rules import Registry
from weightloom.rules.one_way import LoadOnlyWarning, one_way_notes

ONE = """from weightloom.plugins import Architecture, hookimpl
class Plugin:
    @hookimpl
    def weightloom_architectures(self):
        return [Architecture(name={name!r}, model_types=({kind!r},), task="embed", read_config=dict, build=None,
                             adapters="none")]
PLUGIN = Plugin()
"""


def one(name: str, kind: str) -> str:
    return ONE.format(name=name, kind=kind)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed distributions."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_ours_come_through_the_same_door() -> None:
    offers = {offer.model_type: offer.distribution for offer in PluginManager().offers()}
    assert {kind: offers[kind] for kind in ("bert", "llama", "mistral", "mixtral", "qwen3_moe")} == dict.fromkeys(
        ("bert", "llama", "mistral", "mixtral", "qwen3_moe"), "weightloom"
    )
    for kind in offers:
        assert kind in PluginManager().architecture(kind).model_types


def test_an_installed_plugin_is_found_by_name(site: Path) -> None:
    install_example(site)
    found = PluginManager().architecture("my_llama")
    assert (found.name, found.source, found.task) == ("my_llama", "weightloom-my-llama", "generate")


def test_looking_imports_nothing_and_asking_imports_one(site: Path) -> None:
    install(site, "first", {"kind_one": "one_module:PLUGIN"}, {"one_module": one("one", "kind_one")})
    install(site, "second", {"kind_two": "two_module:PLUGIN"}, {"two_module": one("two", "kind_two")})
    manager = PluginManager()
    assert {"kind_one", "kind_two", "llama"} <= set(manager.model_types())
    assert not {"one_module", "two_module"} & set(sys.modules)
    assert manager.architecture("kind_one").source == "first"
    assert "one_module" in sys.modules and "two_module" not in sys.modules


def test_listing_imports_no_architecture_and_no_mlx() -> None:
    code = (
        "import sys; from weightloom.plugins import PluginManager; assert PluginManager().offers(); "
        "early = ('mlx', 'weightloom.plugins.architectures.llama', 'numpy'); "
        "print(sorted(n for n in sys.modules if n.startswith(early)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.case("C84")
def test_two_that_claim_one_type_are_reported_and_one_can_be_chosen(site: Path) -> None:
    """C84."""
    install(site, "ours", {"contested": "module_a:PLUGIN"}, {"module_a": one("mine", "contested")})
    install(site, "theirs", {"contested": "module_b:PLUGIN"}, {"module_b": one("mine", "contested")})
    manager = PluginManager()
    with pytest.raises(PluginError) as raised:
        manager.architecture("contested")
    text = str(raised.value)
    assert "ours:mine" in text and "theirs:mine" in text and "--architecture" in text
    assert manager.architecture("contested", "theirs:mine").source == "theirs"
    assert manager.architecture("contested", "ours").source == "ours"
    with pytest.raises(PluginError, match="'neither'"):
        manager.architecture("contested", "neither")


def test_one_object_under_two_names_and_from_two_distributions_is_no_clash(site: Path) -> None:
    text = one("mine", "alias_a").replace("('alias_a',)", "('alias_a', 'alias_b')")
    install(site, "ours", {"alias_a": "shared:PLUGIN", "alias_b": "shared:PLUGIN"}, {"shared": text})
    install(site, "again", {"alias_a": "shared:PLUGIN"})
    manager = PluginManager()
    assert manager.architecture("alias_a") == manager.architecture("alias_b")


FAULTS = {
    "raises when imported": "raise RuntimeError('boom')",
    "lacks a package": "import no_such_package_at_all",
    "has no such object": "OTHER = 1",
    "is no plugin": "PLUGIN = 3",
    "misspells the hook": one("x", "broken").replace("weightloom_architectures", "weightloom_architecture"),
    "takes what there is not": one("x", "broken").replace("(self)", "(self, nothing)"),
    "raises when asked": one("x", "broken").replace("return [", "raise ValueError('boom')\n        return ["),
    "offers something else": one("x", "broken").replace("return [", "return [3] and [4] or ["),
    "offers an architecture that cannot be": one("", "broken"),
    "exits": "raise SystemExit(3)",
}


@pytest.mark.parametrize("text", FAULTS.values(), ids=FAULTS.keys())
def test_a_plugin_that_cannot_be_used_does_not_take_the_others_down(site: Path, text: str) -> None:
    install(site, "faulty", {"broken": "broken_module:PLUGIN", "broken_too": "broken_module:PLUGIN"})
    (site / "broken_module.py").write_text(text)
    install(site, "fine", {"sound": "sound_module:PLUGIN"}, {"sound_module": one("sound", "sound")})
    manager = PluginManager()
    for kind in ("broken", "broken_too"):
        with pytest.raises(PluginError) as raised:
            manager.architecture(kind)
        said = str(raised.value)
        assert "could not be used" in said and "broken_module:PLUGIN" in said and "faulty" in said
    assert [problem.offer.distribution for problem in manager.problems] == ["faulty"]
    assert manager.architecture("sound").name == "sound" and manager.architecture("llama").name == "llama"


def test_a_plugin_that_serves_others_only_is_named_for_this_type(site: Path) -> None:
    install(site, "other", {"promised": "other_module:PLUGIN"}, {"other_module": one("x", "kept")})
    with pytest.raises(PluginError, match=r"other other_module:PLUGIN is .* 'promised' and offers .* for 'kept'"):
        PluginManager().architecture("promised")


@pytest.mark.case("C22")
@pytest.mark.parametrize("spelling", ["Muse_Glimmer", "muse-glimmer", "muse_glimmer"])
def test_c22_spellings_of_one_model_type_reach_the_same_plugin(site: Path, spelling: str) -> None:
    """C22."""
    install(site, "muse", {"muse_glimmer": "muse_module:PLUGIN"}, {"muse_module": one("muse", "muse_glimmer")})
    manager = PluginManager()
    assert manager.find(spelling) == "muse_glimmer"
    found = manager.architecture(spelling)
    assert (found.name, found.nodes({"model_type": spelling})[0].model_type) == ("muse", "muse_glimmer")


@pytest.mark.case("C22")
def test_c22_names_that_differ_in_a_hyphen_alone_are_two(site: Path) -> None:
    """C22: the exact name first, and what both would do for is refused with both named."""
    install(site, "hyphen", {"llava-qwen2": "hyphen_module:PLUGIN"}, {"hyphen_module": one("bunny", "llava-qwen2")})
    install(site, "bar", {"llava_qwen2": "bar_module:PLUGIN"}, {"bar_module": one("fast", "llava_qwen2")})
    manager = PluginManager()
    assert manager.architecture("llava-qwen2").name == "bunny" and manager.architecture("llava_qwen2").name == "fast"
    with pytest.raises(PluginError, match="'LLaVA_Qwen2'") as raised:
        manager.architecture("LLaVA_Qwen2")
    assert raised.value.hint is not None and "did you mean llava-qwen2 or llava_qwen2?" in raised.value.hint


@pytest.mark.case("C22")
def test_c22_nothing_is_taken_by_default() -> None:
    """C22: `lama` suggests `llama`."""
    assert PluginManager().find("lama") is None
    with pytest.raises(PluginError) as raised:
        PluginManager().architecture("lama")
    assert "did you mean llama" in str(raised.value) and "install a package" in str(raised.value)


@dataclass(frozen=True)
class Blur(ConversionOp):
    """A custom step that nobody can undo."""

    def lower(self, chain: Chain) -> None:
        Chunk(0).lower(chain)


BLURRED = RuleSet([WeightConverter("a.w", ["b.w", "c.w"], [Blur()])])


class OneWay:
    @hookimpl
    def weightloom_architectures(self) -> list[Architecture]:
        return [
            Architecture(
                name="blurred", model_types=("blurred",), task="embed", read_config=dict, build=dict,
                adapters="none", rules=BLURRED,
            )  # type: ignore[arg-type]
        ]  # fmt: skip


@pytest.mark.case("C83")
def test_a_plugin_with_a_rule_without_inverse_is_reported_when_it_registers() -> None:
    """C83."""
    manager = PluginManager()
    manager.register(OneWay(), "mine")
    (note,) = manager.notes
    assert "blurred: load only, cannot save back: Blur has no inverse" in note
    assert manager.architecture("blurred").source == "mine"


@pytest.mark.case("C83")
def test_a_strict_manager_refuses_it() -> None:
    """C83."""
    manager = PluginManager(strict=True)
    with pytest.raises(NotInvertible, match="load only, cannot save back: Blur"):
        manager.register(OneWay(), "mine")
    assert manager.architectures("blurred") == ()


@pytest.mark.case("C83")
def test_a_registry_says_so_too_and_refuses_when_strict() -> None:
    """C83."""
    registry = Registry()
    with pytest.warns(LoadOnlyWarning, match=r"'my_type': load only, cannot save back: Blur has no inverse"):
        registry.register("my_type", BLURRED)
    assert registry.rules("my_type") == BLURRED
    with pytest.raises(NotInvertible, match="Blur"):
        registry.register("other_type", BLURRED, strict=True)
    assert registry.registered("other_type") is None


def test_a_lossy_rule_is_load_only_and_a_sound_one_is_not() -> None:
    sound = WeightConverter("a.w", ["b.w", "c.w"], [Chunk(0)])
    assert one_way_notes([sound]) == ()
    assert "says that it is lossy" in one_way_notes([sound.replace(fidelity="lossy")])[0]


def test_no_shipped_rule_is_without_a_way_back_unsaid() -> None:
    for kind in PluginManager().model_types():
        assert one_way_notes(PluginManager().architecture(kind).rules) == ()


def test_an_architecture_says_its_name_and_its_adapters() -> None:
    with pytest.raises(PluginError, match="model types"):
        Architecture(name="x", model_types=(), task="embed", read_config=dict, build=dict, adapters="no")  # type: ignore[arg-type]
    with pytest.raises(PluginError, match="adapters"):
        Architecture(name="x", model_types=("x",), task="embed", read_config=dict, build=dict, adapters=())  # type: ignore[arg-type]


@pytest.mark.parametrize("interface", [INTERFACE + 1, 0, "1", True])
def test_a_plugin_for_another_interface_is_refused_and_the_rest_work(
    interface: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (EXAMPLE / "my_llama.py").read_text(encoding="utf-8")
    text = text.replace("class Plugin:\n", f"class Plugin:\n    interface = {interface!r}\n")
    module = f"future_{abs(hash(repr(interface)))}"
    install(tmp_path, "from-the-future", {"my_llama": f"{module}:PLUGIN"}, {module: text})
    monkeypatch.syspath_prepend(str(tmp_path))
    manager = PluginManager()
    assert manager.architectures("my_llama") == ()
    (problem,) = manager.problems
    assert problem.offer.distribution == "from-the-future"
    assert f"interface {interface!r}" in problem.why and f"from 1 to {INTERFACE}" in problem.why
    with pytest.raises(PluginError, match="from-the-future"):
        manager.architecture("my_llama")
    assert manager.architecture("llama").name == "llama"


def test_a_hook_that_goes_works_with_a_warning_and_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEPRECATED, "weightloom_architectures", "offer them otherwise")
    manager = PluginManager()
    with pytest.warns(DeprecationWarning, match=f"goes with plugin interface {INTERFACE + 1}; offer them otherwise"):
        manager.register(llama.PLUGIN)
    assert manager.architecture("llama").name == "llama"
    assert any("offer them otherwise" in note for note in manager.notes)


def test_a_class_is_of_the_family_that_names_it_first() -> None:
    assert PluginManager().with_class("LlamaForCausalLM") == ("llama",)
    assert PluginManager().with_class("ExaoneForCausalLM") == ("exaone",)
    assert PluginManager().with_class("NobodysForCausalLM") == ()


def test_rules_in_python_say_whose_they_are(site: Path) -> None:
    offered = one("mine", "placed").replace("adapters=", "rules=RuleSet([WeightRenaming('a', 'b')]), adapters=")
    text = "from weightloom.engine import RuleSet, WeightRenaming\n" + offered
    install(site, "theirs", {"placed": "placed_module:PLUGIN"}, {"placed_module": text})
    (rule,) = PluginManager().architecture("placed").rules
    assert rule.title().endswith("(theirs, in Python)")
