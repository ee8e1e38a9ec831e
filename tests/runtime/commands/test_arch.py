"""arch: what is installed, and one architecture in full."""

from pathlib import Path

import pytest

from tests.plugins.installed import install_example
from tests.runtime.support import Cli

OURS = {"bert", "llama", "mistral", "mixtral", "qwen3_moe"}


def test_all_are_listed_with_where_they_come_from(cli: Cli) -> None:
    rows = cli("arch", "--json").data["architectures"]
    assert {row["model_type"] for row in rows if row["distribution"] == "weightloom"} >= OURS
    assert all(row["plugin"].startswith("weightloom.plugins.") for row in rows)
    llama = next(row for row in rows if row["model_type"] == "llama")
    assert llama == {
        "model_type": "llama",
        "name": "llama",
        "task": "generate",
        "by_request": ["rerank"],
        "layouts": ["hf", "gguf", "mlx"],
        "verified": "Transformers 5.24 LlamaForCausalLM",
        "plugin": "weightloom.plugins.architectures.llama:PLUGIN",
        "distribution": "weightloom",
    }


def test_the_list_says_what_each_takes_and_how_it_was_verified(cli: Cli) -> None:
    lines = cli("arch").out.splitlines()
    assert lines[0].split("  ")[0] == "model type" and lines[-1].startswith("quantized forms, of any of them: awq, ")
    (found,) = (line.split() for line in lines if line.startswith("bert ") and " embed " in line)
    assert found == ["bert", "embed", "hf", "weightloom", "Transformers", "5.24", "BertModel"]


def test_one_is_described(cli: Cli) -> None:
    found = cli("arch", "bert", "--json").data["architecture"]
    assert (found["name"], found["source"], found["task"]) == ("bert", "weightloom", "embed")
    assert "BertModel" in found["class_names"] and found["adapters"] == ["lora", "dora"]
    assert cli("arch", "llama", "--json").data["architecture"]["adapters"] == ["lora", "dora"]
    shown = cli("arch", "bert").out
    assert "task         embed" in shown and "layouts      hf" in shown
    assert "verified by  Transformers 5.24 BertModel" in shown and found["layouts"] == ["hf"]


def test_several_for_one_model_type_are_described_with_what_each_is_for(cli: Cli) -> None:
    """The first is the one that is taken where the files say no more."""
    found = cli("arch", "BERT", "--json").data
    assert [each["name"] for each in found["others"]] == ["bert_classifier"]
    assert (found["others"][0]["task"], found["architecture"]["task"]) == ("rerank", "embed")
    shown = cli("arch", "bert").out
    assert "name         bert\n" in shown and "name         bert_classifier\n" in shown
    assert cli("arch", "llama", "--json").data["architecture"]["by_request"] == ["rerank"]
    assert "task         generate (by request: rerank)" in cli("arch", "llama").out


def test_an_unknown_one_names_the_nearest_and_what_to_install(cli: Cli) -> None:
    ran = cli("arch", "lama")
    assert ran.code == 1
    assert "no installed plugin serves model type 'lama'" in ran.err and "did you mean llama" in ran.err
    assert "install a package that offers it" in ran.err


def test_the_rules_of_a_plugin_itself_are_listed_and_rules_show_says_where(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_example(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    ran = cli("arch", "my_llama")
    assert [line for line in ran.out.splitlines() if line.startswith("own rule")] == [
        r"own rule     ^net\. -> model.",
        r"own rule     ^model\.blocks\. -> model.layers.",
    ]
    assert len(cli("arch", "my_llama", "--json").data["architecture"]["rules"]) == 2
    refused = cli("rules", "show", "my_llama")
    assert refused.code == 2 and "weightloom arch my_llama" in refused.err and "nearest" not in refused.err
