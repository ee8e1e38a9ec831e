"""What the rule authoring commands say as JSON: files and lines, fit for scripts."""

from __future__ import annotations

from pathlib import Path

from tests.cases.fixtures import filled, t0_shapes
from tests.runtime.support import Cli, checkpoint

RULES = r"""schema: 1
family: mine
layouts:
  hf:
    rules:
      - rename: {from: '^net\.', to: 'model.'}
      - drop: ['\.ids']
"""


def rule_file(folder: Path) -> Path:
    path = folder / "mine.yaml"
    path.write_text(RULES, encoding="utf-8")
    return path


def test_rules_test(cli: Cli, tmp_path: Path) -> None:
    rules, names = rule_file(tmp_path), tmp_path / "names.txt"
    names.write_text("net.a.w\nplain\nb.ids\n")
    found = cli("rules", "test", rules, "--names", names, "--json").data["names"]
    assert [(each["name"], each["results"]) for each in found] == [
        ("net.a.w", ["model.a.w"]), ("plain", ["plain"]), ("b.ids", []),
    ]  # fmt: skip
    assert f"{rules}:6" in found[0]["acts"][0]["rule"]
    assert f"{rules}:7" in found[2]["acts"][0]["rule"]


def test_rules_lint(cli: Cli, tmp_path: Path) -> None:
    rules = rule_file(tmp_path)
    rules.write_text(RULES + "      - rename: {from: '^net\\.a', to: 'b'}\n", encoding="utf-8")
    (found,) = cli("rules", "lint", rules, "--json").data["findings"]
    assert (found["file"], found["line"], found["column"], found["code"]) == (str(rules), 8, 24, "WL104")
    assert "mine.yaml:6 renames all that it matches" in found["message"]


def test_explain_names_the_caller_s_file_and_line(cli: Cli, tmp_path: Path) -> None:
    rules = rule_file(tmp_path)
    path = checkpoint(tmp_path / "t0", filled(t0_shapes(prefix="net.")))
    found = cli("explain", path, "net.norm.weight", "--rules", rules, "--json").data
    assert found["parameters"] == ["model.norm.weight"]
    assert (found["steps"][0]["file"], found["steps"][0]["line"]) == (str(rules), 6)
    assert f"{rules}:6" in cli("explain", path, "net.norm.weight", "--rules", rules).out
