"""Containers of other packages: found by their mark, opened before other forms, refused by name where they fail."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import mlx.core as mx
import pytest

from tests.plugins.installed import install_points
from tests.plugins.tiny import CONFIGS
from weightloom.engine.errors import CheckpointError, PluginError
from weightloom.plugins import PluginManager
from weightloom.plugins.discovery.sources import GROUP, open_bundle
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.testing import Sample, write_checkpoint
from weightloom.runtime import load
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.cli import main
from weightloom.runtime.converting.conversion import Order, convert

CRATE = Path(__file__).with_name("distributions") / "source"
SAMPLE = Sample("plain", CONFIGS["llama"])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the example, as its pyproject.toml declares it."""
    project = tomllib.loads((CRATE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    site = tmp_path / "site"
    install_points(site, project["name"], project["entry-points"])
    shutil.copy(CRATE / "crate.py", site)
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.fixture
def crate(site: Path, tmp_path: Path) -> Path:
    """Write a tiny Llama, and put it in a crate."""
    write_checkpoint(SAMPLE, PluginManager().architecture("llama"), tmp_path / "plain")
    folder = tmp_path / "crate"
    folder.mkdir()
    shutil.copy(tmp_path / "plain" / "model.safetensors", folder / "oak.plank")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    listed = {"planks": ["oak.plank"], "config": CONFIGS["llama"], "papers": ["chat_template.jinja"]}
    (folder / "crate.json").write_text(json.dumps(listed))
    return folder


def test_a_container_loads_as_what_it_holds(crate: Path, tmp_path: Path) -> None:
    ours, plain = load(crate), load(tmp_path / "plain")
    assert all(mx.array_equal(a, parameters(plain.model)[n]).item() for n, a in parameters(ours.model).items())
    ours.save(tmp_path / "saved")
    assert (tmp_path / "saved" / "model.safetensors").read_bytes() == (crate / "oak.plank").read_bytes()
    assert json.loads((tmp_path / "saved" / "config.json").read_bytes()) == CONFIGS["llama"]
    assert (tmp_path / "saved" / "chat_template.jinja").is_file()


def test_a_container_is_converted_to_an_ordinary_directory(crate: Path, tmp_path: Path) -> None:
    done = convert(crate, Order(tmp_path / "out", "hf"), Wish())
    assert {"config.json", "chat_template.jinja"} <= set(done.side_files)
    assert not (tmp_path / "out" / "crate.json").exists()
    again = load(tmp_path / "out")
    assert mx.array_equal(again.model.lm_head.weight, load(crate).model.lm_head.weight).item()  # type: ignore[attr-defined]


def test_commands_take_it(crate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("inspect", "plan", "verify"):
        assert main([command, str(crate)]) == 0, capsys.readouterr()


def test_what_bears_no_mark_imports_nothing(site: Path, tmp_path: Path) -> None:
    (site / "crate.py").write_text("raise AssertionError('imported')")
    assert open_bundle(tmp_path) is None


def test_its_own_error_is_raised_as_it_is(crate: Path) -> None:
    (crate / "crate.json").write_text('{"config": {}}')
    with pytest.raises(CheckpointError, match="no planks"):
        load(crate)


def test_any_other_error_names_the_plugin(crate: Path) -> None:
    (crate / "crate.json").write_text("no JSON")
    with pytest.raises(PluginError, match=r"crate:SOURCE of weightloom-crate cannot open .*JSONDecodeError"):
        load(crate)


def test_two_that_claim_a_mark_are_both_named(crate: Path, site: Path) -> None:
    install_points(site, "other-crate", {GROUP: {"crate.json": "other:SOURCE"}})
    with pytest.raises(PluginError, match=r"crate:SOURCE of weightloom-crate, other:SOURCE of other-crate"):
        load(crate)


def test_what_gives_no_bundle_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_points(tmp_path, "odd", {GROUP: {".odd": "odd_source:SOURCE"}})
    (tmp_path / "odd_source.py").write_text("class SOURCE:\n    open = staticmethod(str)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match="gives str"):
        open_bundle(tmp_path / "model.odd")
