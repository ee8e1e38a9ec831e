"""plan and explain with --text-only and --architecture: the plan that a load with the same wish has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.installed import install
from tests.runtime.choosing.test_text_half import PUBLISHED, TOWERS, whole
from tests.runtime.models import add_tokenizer, write_model
from tests.runtime.support import Cli
from weightloom.runtime import load

NAME = "language_model.model.layers.0.mlp.up_proj.weight"
TWO = """
from dataclasses import replace
from weightloom.plugins import hookimpl
from weightloom.plugins.architectures.llama import LLAMA
class Plugin:
    @hookimpl
    def weightloom_architectures(self):
        return [replace(LLAMA, name=name, model_types=("twofold",)) for name in ("mine", "other")]
PLUGIN = Plugin()
"""


@pytest.mark.parametrize("kind", ["llava", "unheard_of"])
@pytest.mark.case("C23")
def test_c23_the_text_model_is_planned_alone(cli: Cli, tmp_path: Path, kind: str) -> None:
    """C23: what plan shows is what load does: the towers dropped by a rule, the rest all there."""
    path = whole(tmp_path, PUBLISHED, TOWERS, model_type=kind)
    ran = cli("plan", path, "--text-only", "--json")
    assert ran.code == 0, ran.err
    data = ran.data
    assert data["target"].startswith("the parameters of llama (weightloom), the text model alone, by text_config")
    assert {each["name"] for each in data["report"]["dropped"]} == set(TOWERS) and data["ok"] is True
    assert data["report"] == load(path, text_only=True).report.to_json()
    found = cli("explain", path, NAME, "--text-only", "--json").data
    assert found["parameters"] == ["model.layers.0.mlp.up_proj.weight"]


def test_without_it_the_whole_is_planned_and_the_way_out_named(cli: Cli, tmp_path: Path) -> None:
    target = cli("plan", whole(tmp_path, PUBLISHED, TOWERS), "--json").data["target"]
    assert "no architecture for 'llava' is installed" in target and "--text-only plans its text model" in target


def test_an_architecture_of_several_is_chosen(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two plugins that offer one model type: nothing is taken in silence, on no command that plans."""
    install(tmp_path / "site", "two", {"twofold": "two:PLUGIN"}, {"two": TWO})
    monkeypatch.syspath_prepend(tmp_path / "site")
    path = write_model(tmp_path / "model", "llama")
    (path / "config.json").write_text((path / "config.json").read_text().replace('"llama"', '"twofold"'))
    convert = ["convert", path, tmp_path / "out", "--layout", "hf"]
    for line in (["plan", path], ["explain", path, "model.norm.weight"], convert):
        ran = cli(*line)
        assert ran.code == 1 and "mine" in ran.err and "other" in ran.err
        assert cli(*line, "--architecture", "other").code == 0
    assert "the parameters of other" in cli("plan", path, "--architecture", "other").out


@pytest.mark.case("C23")
def test_c23_the_text_model_speaks_alone(cli: Cli, tmp_path: Path) -> None:
    """C23: generate says which option helps where nothing serves the whole, and with it runs the text model."""
    path = add_tokenizer(whole(tmp_path, PUBLISHED, TOWERS))
    line = ["generate", path, "-p", "ab", "--max-tokens", "2"]
    assert "--text-only" in cli(*line).err
    ran = cli(*line, "--text-only", "--json")
    assert ran.code == 0 and "this is the text model alone" in ran.data["notes"][0]
