"""C84: a model of an installed one-file plugin goes through every command, with nothing of ours edited."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import write
from tests.plugins.installed import install, install_example, install_points
from tests.runtime.models import config_of, runnable
from tests.runtime.support import Cli
from weightloom.engine.errors import PluginError
from weightloom.plugins import PluginManager
from weightloom.rules import Registry
from weightloom.runtime import load
from weightloom.runtime.choosing.choice import Wish, find_choice
from weightloom.runtime.choosing.rule_choice import model_rules
from weightloom.runtime.configs.config import Config


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    install_example(tmp_path / "site")
    yield tmp_path / "site"
    sys.modules.pop("my_llama", None)


@pytest.fixture
def path(tmp_path: Path, site: Path) -> Path:
    """A checkpoint as the example publishes it: blocks for layers."""
    tied = {"tie_word_embeddings": True}
    folder = runnable(tmp_path / "model", **tied)
    stored = mx.load(str(folder / "model.safetensors"))
    names = {name: name.replace("model.layers.", "net.blocks.").replace("model.", "net.") for name in stored}
    write(folder / "model.safetensors", {names[name]: np.array(array) for name, array in stored.items()})
    config = config_of("llama", model_type="my_llama", logit_scale=2.0, **tied)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_it_loads_runs_and_is_written_back(path: Path, tmp_path: Path) -> None:
    m = load(path)
    plain = load(runnable(tmp_path / "plain", tie_word_embeddings=True))
    tokens = mx.array([[1, 2, 3]])
    assert mx.allclose(m.model(tokens), plain.model(tokens) * 2, atol=1e-5).item()
    for layout in ("original", "hf"):
        m.save(tmp_path / layout, layout=layout)
        found = (tmp_path / layout / "model.safetensors").read_bytes()
        assert layout == "hf" or found == (path / "model.safetensors").read_bytes()
    assert mx.array_equal(load(tmp_path / "hf").model(tokens), m.model(tokens)).item()


def test_every_command_takes_it(cli: Cli, path: Path, tmp_path: Path) -> None:
    for call in (
        ["inspect", path, "--estimate-memory"],
        ["plan", path],
        ["explain", path, "net.norm.weight"],
        ["verify", path],
        ["convert", path, tmp_path / "out", "--layout", "hf"],
        ["generate", path, "-p", "x", "--max-tokens", 2],
        ["arch", "my_llama"],
        ["plugins"],
    ):
        ran = cli(*call)
        assert ran.code == 0, ran
    assert "the parameters of my_llama (weightloom-my-llama)" in cli("plan", path).out
    stored = mx.load(str(tmp_path / "out" / "model.safetensors"))
    assert "net.blocks.2.mlp.up_proj.weight" in stored


def test_two_plugins_for_it_are_named_and_one_is_chosen(cli: Cli, path: Path, site: Path) -> None:
    text = (site / "my_llama.py").read_text()
    install(site, "rival", {"my_llama": "rival_llama:PLUGIN"}, {"rival_llama": text})
    with pytest.raises(PluginError, match=r"(?s)rival:my_llama.*--architecture"):
        load(path)
    assert load(path, architecture="rival:my_llama").architecture.source == "rival"
    ran = cli("generate", path, "-p", "x", "--max-tokens", 1)
    assert ran.code == 1 and "weightloom-my-llama:my_llama" in ran.err and "rival:my_llama" in ran.err
    chosen = cli("generate", path, "-p", "x", "--max-tokens", 1, "--architecture", "rival")
    assert chosen.code == 0
    listed = cli("plugins")
    assert listed.code == 1 and "offered by 2 plugins" in listed.err
    sys.modules.pop("rival_llama", None)


@pytest.mark.case("C22")
def test_c22_what_a_plugin_spells_exactly_is_its_own_beside_rules_for_another_spelling(
    site: Path, tmp_path: Path
) -> None:
    """C22: rule files know hrm_text; `hrm-text` is a plugin's here, and a third spelling is nobody's."""
    text = (site / "my_llama.py").read_text().replace('"my_llama"', '"hrm-text"')
    install(site, "hyphen", {"hrm-text": "hyphen_llama:PLUGIN"}, {"hyphen_llama": text})

    def found(model_type: str) -> str | None:
        raw = json.dumps({"model_type": model_type}).encode()
        choice = find_choice(Config(tmp_path, raw, json.loads(raw)), Wish())
        return choice and choice.identifier

    assert (found("hrm-text"), found("hrm_text"), found("HRM-Text")) == ("hrm-text", "hrm_text", None)


def rewriting(site: Path, text: str, module: str) -> None:
    """Replace the example by one whose architecture rewrites its rules."""
    code = (Path(site) / "my_llama.py").read_text(encoding="utf-8")
    code = code.replace('    adapters="not tried', f'    rewrite_rules={text},\n    adapters="not tried')
    install(
        site, "rewriting", {"rewritten": f"{module}:PLUGIN"}, {module: code.replace('("my_llama",)', '("rewritten",)')}
    )


def test_an_architecture_rewrites_the_rules_that_it_is_read_and_written_by(path: Path, site: Path) -> None:
    def renamed(name: str) -> str:
        return name.replace("net.", "web.", 1)

    stored = mx.load(str(path / "model.safetensors"))
    write(path / "model.safetensors", {renamed(name): np.array(array) for name, array in stored.items()})
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "model_type": "rewritten"}))
    rule = 'lambda rules, config: RuleSet([WeightRenaming("^web", "net"), *rules], rules.base_model_prefix)'
    rewriting(site, rule, "rewriting_llama")
    m = load(path)
    assert mx.array_equal(m.model.model.embed_tokens.weight, stored["net.embed_tokens.weight"]).item()  # type: ignore[attr-defined]
    m.save(path.parent / "again", layout="hf")
    again = mx.load(str(path.parent / "again" / "model.safetensors"))
    assert sorted(again) == sorted(map(renamed, stored))


def test_what_gives_no_rules_is_refused_by_name(path: Path, site: Path) -> None:
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "model_type": "rewritten"}))
    rewriting(site, "lambda rules, config: None", "forgetful_llama")
    with pytest.raises(PluginError, match="rewriting:my_llama gives NoneType"):
        load(path)


def test_an_architecture_of_another_package_inherits_no_rules_by_its_name() -> None:
    config = config_of("mixtral")
    ours = PluginManager().architecture("mixtral")
    theirs = ours.from_source("another-package")
    assert any("mixtral" in str(rule.place) for rule in model_rules(ours, config, "hf"))
    assert not any("mixtral" in str(rule.place) for rule in model_rules(theirs, config, "hf"))
    asked = replace(theirs, inherits_rules=True)
    assert model_rules(asked, config, "hf") == model_rules(ours, config, "hf")


def test_it_has_the_rules_that_a_package_brings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brought_rules").mkdir()
    (tmp_path / "brought_rules" / "__init__.py").write_text("")
    (tmp_path / "brought_rules" / "brought.yaml").write_text(
        "schema: 1\nfamily: brought\napplies_to: {model_types: [brought]}\nlayouts:\n  hf:\n    rules:\n"
        "      - rename: {from: '^web', to: 'model'}\n        why: 'To be seen.'\n"
    )
    install_points(tmp_path, "brought", {"weightloom.rules": {"brought": "brought_rules"}})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("weightloom.runtime.choosing.resolution.registry", Registry())
    theirs = replace(PluginManager().architecture("llama"), model_types=("brought",), class_names=(), source="brought")
    rules = model_rules(theirs, config_of("llama", model_type="brought"), "hf")
    (found,) = (rule for rule in rules if "brought" in str(rule.place))
    assert found.title().startswith("^web -> model")


def test_an_architecture_repairs_what_only_it_knows_of(path: Path, site: Path, tmp_path: Path) -> None:
    config = json.loads((path / "config.json").read_text())
    layers = config.pop("num_hidden_layers")
    (path / "config.json").write_text(json.dumps({**config, "model_type": "repaired", "n_blocks": str(layers)}))
    code = (Path(site) / "my_llama.py").read_text(encoding="utf-8").replace('("my_llama",)', '("repaired",)')
    hook = """    repair_config=lambda content: Repaired(
        {**content, "num_hidden_layers": int(content["n_blocks"])},
        (Repair("n_blocks", "is read as num_hidden_layers"),),
    ),
"""
    code = code.replace('    adapters="not tried', f'{hook}    adapters="not tried')
    code = code.replace(
        "import mlx.core", "from weightloom.plugins.configs.repair import Repair, Repaired\nimport mlx.core"
    )
    install(site, "repairing", {"repaired": "repairing_llama:PLUGIN"}, {"repairing_llama": code})
    m = load(path)
    assert len(m.model.model.layers) == layers  # type: ignore[attr-defined]
    assert "config.json: n_blocks is read as num_hidden_layers" in m.report.repaired
    m.save(tmp_path / "again")
    assert (tmp_path / "again" / "config.json").read_bytes() == (path / "config.json").read_bytes()
