"""plugins: every distribution's plugins, and those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.installed import install, install_points
from tests.runtime.support import Cli


def test_what_is_installed_is_listed(cli: Cli) -> None:
    ran = cli("plugins", "--json")
    rows = {row["plugin"]: row["names"] for row in ran.data["plugins"] if row["kind"] == "architecture"}
    assert ran.code == 0 and ran.data["problems"] == [] and ran.data["notes"] == []
    served = ["qwen2", "qwen3"]
    assert rows["weightloom.plugins.architectures.qwen3:PLUGIN"] == served
    assert (
        f"architecture  weightloom  weightloom.plugins.architectures.qwen3:PLUGIN  {', '.join(served)}"
        in cli("plugins").out.splitlines()
    )


def test_one_that_cannot_be_used_is_1_and_the_others_are_there(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "faulty", {"broken": "broken_plugin:PLUGIN"}, {"broken_plugin": "raise RuntimeError('boom')"})
    ran = cli("plugins")
    assert ran.code == 1
    assert ran.err == "broken_plugin:PLUGIN (faulty): RuntimeError: boom\n"
    assert (
        "weightloom.plugins.architectures.bert:PLUGIN" in ran.out and "faulty  broken_plugin:PLUGIN  broken" in ran.out
    )
    assert cli("arch", "llama").code == 0
    refused = cli("arch", "broken")
    assert refused.code == 1 and "RuntimeError: boom" in refused.err and "faulty" in refused.err


@pytest.mark.parametrize(
    ("group", "kind", "text", "why"),
    [
        ("weightloom.ops", "op", "raise RuntimeError('boom')", "RuntimeError: boom"),
        ("weightloom.sources", "source", "PLUGIN = 3", "it has no open"),
        ("weightloom.formats", "format", "PLUGIN = object()", "offers 'nothing'"),
        ("weightloom.rules", "rules", "PLUGIN = 3", "it gives 3"),
    ],
)
def test_every_kind_is_listed_and_tried(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, kind: str, text: str, why: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = f"listed_{kind}"
    install_points(tmp_path, "odd", {group: {"odd": f"{module}:PLUGIN"}})
    (tmp_path / f"{module}.py").write_text(text)
    ran = cli("plugins", "--json")
    assert ran.code == 1
    assert {"kind": kind, "distribution": "odd", "plugin": f"{module}:PLUGIN", "names": ["odd"]} in ran.data["plugins"]
    (problem,) = ran.data["problems"]
    assert "odd" in problem and why in problem
