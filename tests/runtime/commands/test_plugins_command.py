"""plugins: every distribution's plugins, and those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.installed import install
from tests.runtime.support import Cli


def test_what_is_installed_is_listed(cli: Cli) -> None:
    ran = cli("plugins", "--json")
    rows = {row["plugin"]: row["model_types"] for row in ran.data["plugins"] if row["distribution"] == "weightloom"}
    assert ran.code == 0 and ran.data["problems"] == [] and ran.data["notes"] == []
    assert rows["weightloom.plugins.llama:PLUGIN"] == ["llama", "mistral"]
    assert "weightloom  weightloom.plugins.llama:PLUGIN  llama, mistral" in cli("plugins").out.splitlines()


def test_one_that_cannot_be_used_is_1_and_the_others_are_there(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "faulty", {"broken": "broken_plugin:PLUGIN"}, {"broken_plugin": "raise RuntimeError('boom')"})
    ran = cli("plugins")
    assert ran.code == 1
    assert ran.err == "broken_plugin:PLUGIN (faulty): RuntimeError: boom\n"
    assert "weightloom.plugins.bert:PLUGIN" in ran.out and "faulty  broken_plugin:PLUGIN  broken" in ran.out
    assert cli("arch", "llama").code == 0
    refused = cli("arch", "broken")
    assert refused.code == 1 and "RuntimeError: boom" in refused.err and "faulty" in refused.err
