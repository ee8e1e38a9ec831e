"""What a checkpoint is loaded as, from all that a directory shows, whatever the order it shows it in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.installed import install
from tests.runtime.models import changed, classifier, config_of, runnable, sentence_files, vlm, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import ConfigError, PluginError, UsageError
from weightloom.plugins.judging.fitting import UnfitError
from weightloom.runtime import inspect, load

TEXT = """
from dataclasses import replace
from weightloom.plugins import hookimpl
from weightloom.plugins.architectures.llama import LLAMA

class Plugin:
    @hookimpl
    def weightloom_architectures(self):
        return [replace(LLAMA, source="", %s)]

PLUGIN = Plugin()
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


def offer(site: Path, name: str, **changes: str) -> None:
    """Install a variant of Llama, for Llama's model type unless it says another."""
    points = {changes.pop("model_type", "llama"): f"{name}_module:PLUGIN"}
    given = ", ".join(f"{field}={value}" for field, value in {"name": repr(name), **changes}.items())
    install(site, name, points, {f"{name}_module": TEXT % given})


def test_a_class_decides_where_there_is_no_model_type(cli: Cli, tmp_path: Path) -> None:
    path = changed(write_model(tmp_path / "model", "llama"), model_type=None, architectures=["LlamaForCausalLM"])
    assert load(path).architecture.name == "llama"
    found = cli("inspect", path, "--json").data
    assert found["loads_as"]["architecture"] == "weightloom:llama" and found["identifier"] == "llama"
    assert found["loads_as"]["facts"][0] == {
        "text": "architectures[0] 'LlamaForCausalLM', of llama",
        "field": "architectures[0]",
        "file": str(path / "config.json"),
    }
    planned = cli("plan", path, "--json").data
    assert planned["target"].startswith("the parameters of llama") and planned["error"] is None
    assert planned["choice"]["decided_by"].startswith("architectures[0] 'LlamaForCausalLM'")
    assert cli("verify", path).code == 0


def test_a_class_that_nothing_or_several_build_decides_nothing(site: Path, tmp_path: Path) -> None:
    path = changed(write_model(tmp_path / "model", "llama"), model_type=None, architectures=["FooForCausalLM"])
    with pytest.raises(ConfigError, match="'FooForCausalLM', which no installed architecture builds") as raised:
        load(path)
    assert raised.value.field == "model_type"
    for name in ("one", "two"):
        offer(site, name, model_type=name, model_types=f"({name!r},)", class_names="('FooForCausalLM',)")
    with pytest.raises(ConfigError, match="which several have: one, two"):
        load(path)
    with pytest.raises(ConfigError, match="there is no model_type\n"):
        load(changed(path, architectures=None))


def test_the_class_of_a_text_config_decides_where_it_has_no_model_type(tmp_path: Path) -> None:
    text = {**config_of("llama"), "model_type": None, "architectures": ["LlamaForCausalLM"]}
    path = changed(write_model(tmp_path, "llama"), model_type="unheard_of", text_config=text)
    m = load(path, text_only=True)
    assert m.architecture.name == "llama" and m.half is not None and m.half.field == "text_config.architectures[0]"


def test_a_text_model_that_nothing_serves_is_named_with_the_nearest(tmp_path: Path) -> None:
    path = changed(write_model(tmp_path, "mistral"), model_type="mistral3", text_config={"model_type": "mistral9"})
    with pytest.raises(PluginError, match="'mistral3'") as raised:
        load(path)
    hint = str(raised.value.hint)
    assert "'mistral9' by text_config.model_type, which nothing serves either" in hint
    assert "did you mean mistral" in hint and "install a package" in hint


@pytest.mark.parametrize("class_name", ["BertForTokenClassification", "BertForQuestionAnswering"])
def test_a_head_that_no_architecture_has_is_refused(cli: Cli, tmp_path: Path, class_name: str) -> None:
    path = write_model(tmp_path, "bert", config_of("bert", architectures=[class_name]))
    with pytest.raises(UnfitError, match=class_name) as raised:
        load(path)
    text = str(raised.value)
    assert "bert: it is for embed" in text and "bert_classifier: it is for rerank" in text and "--task: embed" in text
    found = cli("inspect", path, "--json").data["loads_as"]
    assert found["architecture"] is None and class_name in found["refused"]
    assert "loads as      nothing: no installed architecture for model type 'bert'" in cli("inspect", path).out
    plan = cli("plan", path)
    assert (
        plan.code == 1 and "open: not those of an installed architecture" in plan.out and "would load: no" in plan.out
    )
    assert class_name in plan.err and cli("verify", path).code == 0  # its rules are known all the same
    assert cli("plan", path, "--task", "rerank").code == 1
    assert load(path, task="embed").architecture.name == "bert"


def test_a_decoder_with_a_pooling_step_is_not_taken_for_a_generator(tmp_path: Path) -> None:
    path = sentence_files(runnable(tmp_path / "mixtral", "mixtral"))
    with pytest.raises(UnfitError, match=r"mixtral: it is for generate, and there is a Pooling step in .*modules.json"):
        load(path)
    assert load(path, task="generate").task == "generate"
    assert load(path, architecture="mixtral").task == "generate"
    with pytest.raises(UnfitError, match="Pooling step"):
        load(path, architecture="weightloom")  # a source names no architecture
    path = sentence_files(runnable(tmp_path / "llama"))
    assert load(path).architecture.name == "llama_embedder"
    assert load(path, task="generate").task == "generate"


@pytest.mark.parametrize("flag", [{"use_bidirectional_attention": True}, {"is_causal": False}])
def test_a_decoder_that_looks_both_ways_is_not_taken_for_a_generator(tmp_path: Path, flag: dict[str, bool]) -> None:
    path = changed(write_model(tmp_path / "mixtral", "mixtral"), **flag)
    with pytest.raises(UnfitError, match=f"{next(iter(flag))} is"):
        load(path)
    assert load(changed(write_model(tmp_path / "llama", "llama"), **flag)).architecture.name == "llama_embedder"


def test_contradictory_files_are_an_error_until_the_task_is_said(cli: Cli, tmp_path: Path) -> None:
    path = sentence_files(classifier(tmp_path))
    with pytest.raises(ConfigError, match="disagree on what this model is for"):
        load(path)
    assert cli("generate", path, "-p", "x").code == 1 and "disagree" in cli("inspect", path).out
    assert (load(path, task="embed").architecture.name, load(path, task="rerank").task) == ("bert", "rerank")
    assert (
        cli("embed", path, "a", "--task", "embed").code == 0
        and cli("rerank", path, "a", "b", "--task", "rerank").code == 0
    )


def test_a_head_is_seen_where_no_class_is_named(tmp_path: Path) -> None:
    path = changed(classifier(tmp_path), architectures=None)
    m = load(path)
    assert m.task == "rerank" and "classifier.bias" in str(m.decision.evidence.kind)


def test_a_task_that_there_is_not_and_one_that_nothing_does(cli: Cli, tmp_path: Path) -> None:
    path = write_model(tmp_path, "llama")
    with pytest.raises(UsageError, match="'sing'") as raised:
        load(path, task="sing")
    assert "generate, embed, rerank" in str(raised.value.expected)
    with pytest.raises(UnfitError, match="audio was asked for"):
        load(path, task="audio")
    assert cli("plan", path, "--task", "audio").code == 1 and cli("plan", path, "--task", "sing").code == 2


def test_plugins_judge_by_themselves(site: Path, tmp_path: Path) -> None:
    """A plugin for Llama's type that embeds takes the class that it names; of one that neither names both are named."""
    plain = runnable(tmp_path / "plain", architectures=["LlamaForCausalLM"])
    named = runnable(tmp_path / "named", architectures=["LlamaBidirectionalModel"])
    offer(site, "embedder", task="'embed'", class_names="('LlamaBidirectionalModel',)")
    assert load(plain).architecture.name == "llama"
    with pytest.raises(PluginError, match="offered by 2 plugins: embedder:embedder, weightloom:llama_embedder"):
        load(sentence_files(plain))
    assert load(named).architecture.name == "embedder"


def test_an_architecture_that_names_the_class_goes_before_one_that_names_others(site: Path, tmp_path: Path) -> None:
    path = write_model(tmp_path / "model", "llama")
    offer(site, "looped", class_names="('LoopedForCausalLM',)")
    assert load(changed(path, architectures=["LoopedForCausalLM"])).architecture.name == "looped"
    assert load(changed(path, architectures=["LlamaForCausalLM"])).architecture.name == "llama"
    offer(site, "silent", class_names="()")  # it may build any class: that is a clash
    with pytest.raises(PluginError, match="offered by 2 plugins"):
        load(path)
    assert load(path, architecture="silent").architecture.name == "silent"


def test_an_architecture_of_its_own_goes_before_one_by_request(site: Path, tmp_path: Path) -> None:
    path = write_model(tmp_path / "model", "llama")
    assert load(path, task="rerank").architecture.name == "llama"
    offer(site, "judge", task="'rerank'", by_request="()")
    assert load(path, task="rerank").architecture.name == "judge"
    assert load(path).architecture.name == "llama"  # what scores pairs has to be asked for


def test_a_refusal_of_its_own_decides_alone(site: Path, tmp_path: Path) -> None:
    offer(site, "picky", refusal="lambda evidence: None if evidence.config.get('loop_num') == 2 else 'it loops twice'",
          class_names="()")  # fmt: skip
    path = write_model(tmp_path / "model", "llama")
    with pytest.raises(UnfitError, match="picky: it loops twice"):
        load(path, architecture="picky")
    assert load(path).architecture.name == "llama"


def test_inspect_says_what_decided_with_file_and_field(cli: Cli, tmp_path: Path) -> None:
    path = sentence_files(runnable(tmp_path / "model", "bert"))
    found = inspect(path).loads_as
    assert (found.architecture, found.task) == ("weightloom:bert", "embed")
    assert [(fact.field, fact.file) for fact in found.facts] == [
        ("model_type", str(path / "config.json")),
        ("type", str(path / "modules.json")),
        ("vision_config", str(path / "config.json")),
    ]
    shown = cli("inspect", path).out
    assert "loads as      weightloom:bert, to embed" in shown
    assert f"because       there is a Pooling step in {path}/modules.json" in shown
    asked = cli("inspect", path, "--task", "embed", "--json").data["loads_as"]
    assert asked["facts"][1] == {"text": "embed was asked for", "field": "task", "file": None}


def test_inspect_says_that_it_is_the_text_model_alone(cli: Cli, tmp_path: Path) -> None:
    path = changed(vlm(tmp_path), language_model_only=True)
    found = cli("inspect", path, "--json").data["loads_as"]
    assert (found["architecture"], found["facts"][0]["field"]) == ("weightloom:llama", "text_config.model_type")
    assert found["facts"][-1]["field"] == "language_model_only"
    shown = cli("inspect", path).out
    assert "because       this is the text model alone, llama by text_config.model_type; left out" in shown
    assert "towers        text only: language_model_only is true, though there are tensors such as" in shown


def test_inspect_works_without_mlx(tmp_path: Path) -> None:
    path = write_model(tmp_path, "llama")
    code = "import sys; sys.modules['mlx.core'] = None; from weightloom.runtime.cli import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, "inspect", str(path), "--json"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["identifier"] == "llama" and "MLX cannot be loaded" in found["loads_as"]["refused"]


@pytest.mark.parametrize("changes", [{"architectures": ["DFlashDraftModel"]}, {"dflash_config": {"block_size": 4}}])
def test_a_drafter_is_not_taken_for_the_model_that_it_guesses_for(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = write_model(tmp_path, "llama", config_of("llama", **changes))
    with pytest.raises(PluginError, match=r"llama: it is for generate, and .*(DFlashDraftModel|dflash_config)"):
        load(path)


def test_a_class_that_the_architecture_does_not_name_is_said(tmp_path: Path, cli: Cli) -> None:
    path = write_model(tmp_path, "llama", config_of("llama", architectures=["LoopCoderForCausalLM"]))
    assert "'LoopCoderForCausalLM' is none of those that llama names: LlamaForCausalLM" in cli("inspect", path).out
    changed(path, architectures=["LlamaForCausalLM"])
    assert "none of those" not in cli("inspect", path).out
