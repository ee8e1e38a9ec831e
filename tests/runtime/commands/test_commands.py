"""inspect, plan, explain, rules: what they say. Cases C70, C71, C81, C82 at the command line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import weightloom as wl
from tests.cases.fixtures import const, halves, t0, t0_shapes, tm, write, write_sharded
from tests.runtime.support import T0_CONFIG, Cli, checkpoint
from weightloom.engine.errors import CheckpointError
from weightloom.runtime import Inspection


def sharded(folder: Path) -> Path:
    write_sharded(folder, halves(t0()))
    return with_config(folder)


def with_config(folder: Path, **changes: Any) -> Path:
    import json

    (folder / "config.json").write_text(json.dumps({**T0_CONFIG, **changes}))
    return folder


def test_inspect_from_python(tmp_path: Path) -> None:
    path = with_config(sharded(tmp_path), quantization_config={"quant_method": "fp8"})
    found = wl.inspect(path)
    assert isinstance(found, Inspection)
    assert (found.identifier, found.layout, found.quantization) == ("llama", "hf", "fp8")
    assert (found.tensors, found.nbytes) == (21, 4 * sum(array.size for array in t0().values()))
    assert [(total.dtype, total.count) for total in found.dtypes] == [("F32", 21)]
    assert [Path(file.path).name for file in found.files] == [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ]
    assert sum(template.count for template in found.templates) == 21
    query = next(t for t in found.templates if t.name == "model.layers.*.self_attn.q_proj.weight")
    assert (query.count, query.dtype, query.shape, query.nbytes) == (2, "F32", (8, 8), 512)
    assert found.to_json()["schema"] == 1 and "model.layers.*.self_attn.q_proj.weight" in str(found)
    assert found.memory is None


def test_inspect_refuses_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no \*\.safetensors"):
        wl.inspect(tmp_path)


def test_inspect_estimates_memory(cli: Cli, tmp_path: Path) -> None:
    found = cli("inspect", checkpoint(tmp_path / "moe", tm(2), {"model_type": "mixtral"}), "--json")
    assert found.data["memory"] is None
    found = cli("inspect", tmp_path / "moe", "--json", "--estimate-memory")
    assert found.data["memory"]["params"] == found.data["nbytes"] <= found.data["memory"]["peak"]
    assert "of parameters" in cli("inspect", tmp_path / "moe", "--estimate-memory").out


@pytest.mark.case("C70")
def test_c70_a_missing_shard_is_named_before_anything_is_read(cli: Cli, tmp_path: Path) -> None:
    """C70: stop, list the missing files, say "incomplete download?"; there is no fallback."""
    (sharded(tmp_path) / "model-00002-of-00002.safetensors").unlink()
    for command in ("inspect", "plan", "verify"):
        ran = cli(command, tmp_path)
        assert ran.code == 1 and "model-00002-of-00002.safetensors" in ran.err and "ncomplete download" in ran.err
    assert cli("convert", tmp_path, tmp_path.parent / "out").code == 1
    assert not (tmp_path.parent / "out").exists()


@pytest.mark.case("C71")
def test_c71_a_stray_file_is_mentioned_and_not_read(cli: Cli, tmp_path: Path) -> None:
    """C71: the index decides; the file beside it is named."""
    write(sharded(tmp_path) / "model.safetensors", {"model.norm.weight": const(9, 8)})
    ran = cli("inspect", tmp_path)
    assert ran.code == 0 and "note: not read" in ran.out and "model.safetensors" in ran.out
    assert cli("inspect", tmp_path, "--json").data["tensors"] == 21
    plan = cli("plan", tmp_path)
    assert plan.code == 0 and "not read" in plan.out
    assert "21 of 21 tensors byte-equal" in cli("verify", tmp_path).out


def test_the_plan_of_experts(cli: Cli, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "moe", tm(3), {"model_type": "mellum"})
    ran = cli("plan", path)
    assert ran.code == 0
    row = next(line for line in ran.out.splitlines() if "gate_up_proj" in line)
    assert "model.layers.*.mlp.experts.*.gate_proj.weight" in row
    assert "MergeModulelist, Concatenate" in row and "F32 [4, 8] -> F32 [3, 8, 8]" in row
    assert "would load: yes" in ran.out and "can be written back byte for byte: yes" in ran.out
    assert "... and 1 more row" in cli("plan", path, "--limit", "1").out


@pytest.mark.case("C81", "C82")
def test_a_plan_that_would_not_load_is_1_and_says_everything_once(cli: Cli, tmp_path: Path) -> None:
    """C81, C82 at the command line: what does not fit is grouped by shape of name, at most ten lines a kind.

    Without an architecture any name fits, so that what is wrong here are groups that lack a part.
    """
    arrays = {
        name.replace("layers.0", f"layers.{layer}"): array for layer in range(40) for name, array in tm(2).items()
    }
    for layer in range(40):
        del arrays[f"model.layers.{layer}.mlp.experts.1.up_proj.weight"]
        del arrays[f"model.layers.{layer}.mlp.experts.0.down_proj.weight"]
    path = checkpoint(tmp_path / "moe", arrays, {"model_type": "mellum"})
    ran = cli("plan", path)
    assert ran.code == 1 and "would load: no" in ran.out and "incomplete: 80" in ran.out
    assert len(ran.err.splitlines()) < 15 and "x40" in ran.err
    data = cli("plan", path, "--json").data
    assert data["ok"] is False and len(data["report"]["incomplete"]) == 80 and data["error"]["kind"] == "PlanError"
    for command in (["verify", path], ["convert", path, tmp_path / "out", "--layout", "canonical"]):
        assert cli(*command).code == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.case("C81")
def test_c81_names_under_another_prefix_are_listed_by_shape(cli: Cli, tmp_path: Path) -> None:
    """C81: 200 layers are a few lines, each with its count."""
    arrays = {name: const(0, *shape) for name, shape in t0_shapes(200, prefix="net.").items()}
    ran = cli("inspect", checkpoint(tmp_path / "t0", arrays))
    assert ran.code == 0 and len(ran.out.splitlines()) < 30
    assert any(line.split()[:2] == ["net.layers.*.self_attn.q_proj.weight", "x200"] for line in ran.out.splitlines())


def test_one_empty_line_stands_between_table_and_verdict(cli: Cli, tmp_path: Path) -> None:
    lines = cli("plan", checkpoint(tmp_path / "t0")).out.splitlines()
    before = lines[: lines.index("would load: yes")]
    assert before[-1] == "" and before[-2] != ""


def test_explain_both_sides(cli: Cli, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "moe", tm(2), {"model_type": "mellum"})
    parameter = "model.layers.0.mlp.experts.gate_up_proj"
    for name in ("model.layers.0.mlp.experts.1.up_proj.weight", parameter):
        found = cli("explain", path, name, "--json").data
        assert found["parameters"] == [parameter]
        assert len(found["tensors"]) == 4
        step = found["steps"][-1]
        assert (step["kind"], Path(step["file"]).name) == ("convert", "qwen2_moe.yaml") and step["line"] > 1
        assert f"qwen2_moe.yaml:{step['line']}" in cli("explain", path, name).out


def test_explain_an_unknown_name(cli: Cli, tmp_path: Path) -> None:
    ran = cli("explain", checkpoint(tmp_path / "t0"), "model.norm.wieght")
    assert ran.code == 1 and "did you mean model.norm.weight" in ran.err


def test_explain_a_tie(cli: Cli, tmp_path: Path) -> None:
    arrays = t0()
    arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"]
    path = checkpoint(tmp_path / "t0", arrays, {**T0_CONFIG, "tie_word_embeddings": True})
    ran = cli("plan", path)
    assert ran.code == 0 and "lm_head.weight is a second copy of model.embed_tokens.weight" in ran.out
    assert cli("explain", path, "lm_head.weight").code == 0


def rule_file(folder: Path, item: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(f"schema: 1\nfamily: mine\nlayouts:\n  hf:\n    rules:\n      - {item}\n")
    return path


def test_rules_lint(cli: Cli, tmp_path: Path) -> None:
    good = rule_file(tmp_path, "rename: {from: '^net\\.', to: 'model.'}")
    ran = cli("rules", "lint", good)
    assert (ran.code, ran.out) == (0, "0 findings in 1 file\n")
    bad = tmp_path / "bad.yaml"
    bad.write_text(good.read_text().replace("rename", "renam"))
    ran = cli("rules", "lint", good, bad)
    assert ran.code == 1 and ran.out.startswith(f"{bad}:6:") and "WL" in ran.out
    finding = cli("rules", "lint", bad, "--json").data["findings"][0]
    assert (finding["file"], finding["line"]) == (str(bad), 6)


def test_rules_show_in_order_with_places(cli: Cli) -> None:
    found = cli("rules", "show", "mixtral", "--json").data
    assert found["choice"]["layout"] == "hf" and found["base_model_prefix"] == "model"
    assert all(rule["file"] and rule["line"] for rule in found["rules"])
    names = dict.fromkeys(Path(rule["file"]).name for rule in found["rules"])
    assert list(names) == ["llama.yaml", "mixtral.yaml", "legacy.yaml"]
    ran = cli("rules", "show", "mixtral")
    assert "mixtral.yaml:" in ran.out and "  1. " in ran.out


def test_rules_show_something_unknown(cli: Cli) -> None:
    ran = cli("rules", "show", "mixtrall")
    assert ran.code == 2 and "mixtral" in ran.err.split("nearest")[1]
    assert "--model-type" not in ran.err and "rules show FILE.yaml" in ran.err
    assert cli("rules", "show", "mixtral", "--layout", "nosuch").code == 2


def test_rules_test_shows_what_becomes_of_names(cli: Cli, tmp_path: Path) -> None:
    rules = rule_file(
        tmp_path,
        "rename: {from: '^net\\.', to: 'model.'}\n"
        "      - drop: ['\\.ids']\n"
        "      - convert: {from: ['\\.experts\\.*.w1', '\\.experts\\.*.w3'], to: '\\.experts\\.both',"
        " ops: [{MergeModulelist: {dim: 0}}, {Concatenate: {dim: 1}}]}",
    )
    names = tmp_path / "names.txt"
    names.write_text("net.a.w\n\nnet.ids\nplain\n" + "".join(f"net.experts.{i}.w{k}\n" for i in (0, 1) for k in (1, 3)))
    ran = cli("rules", "test", rules, "--names", names)
    assert ran.code == 0, ran
    assert "net.a.w -> model.a.w\n" in ran.out and "plain -> plain\n" in ran.out
    assert "net.ids -> (nothing: kept, and saved back)\n" in ran.out
    assert "net.experts.1.w3 -> model.experts.both\n" in ran.out
    assert f"{rules}:6" in ran.out and f"{rules}:8" in ran.out
    assert "7 names, 6 changed, 0 with a problem" in ran.out


def test_rules_test_says_what_a_converter_lacks(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = (
        "convert: {from: ['a\\.*.x', 'a\\.*.y'], to: 'b', ops: [{MergeModulelist: {dim: 0}}, {Concatenate: {dim: 1}}]}"
    )
    rules = rule_file(tmp_path, item)
    stdin = io.TextIOWrapper(io.BytesIO(b"a.0.x\na.0.y\na.1.x\n"))
    monkeypatch.setattr("sys.stdin", stdin)
    ran = cli("rules", "test", rules, "--names", "-")
    assert ran.code == 1 and "problem: the converter lacks number 1 for a\\.*.y" in ran.out


def test_rules_test_on_names_that_cannot_be_read(cli: Cli, tmp_path: Path) -> None:
    rules = rule_file(tmp_path, "rename: {from: 'x', to: 'y'}")
    assert cli("rules", "test", rules, "--names", tmp_path / "none").code == 3
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    ran = cli("rules", "test", rules, "--names", tmp_path / "binary")
    assert ran.code == 1 and "not UTF-8" in ran.err


def test_rules_schema_is_the_one_that_ships(cli: Cli) -> None:
    import json

    assert json.loads(cli("rules", "schema").out) == cli("rules", "schema", "--json").data["json_schema"]


def test_a_config_that_no_module_is_built_from_would_not_load(cli: Cli, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "t0", config={**T0_CONFIG, "hidden_size": None})
    ran = cli("plan", path)
    assert ran.code == 1 and "would load: no" in ran.out and "hidden_size is None" in ran.err
    assert cli("plan", path, "--open-target").code == 0


def test_rules_show_a_file(cli: Cli, tmp_path: Path) -> None:
    """A rule file is shown by its path; what it does not have is said of the file."""
    path = rule_file(tmp_path, "rename: {from: '^net\\.', to: 'model.'}")
    found = cli("rules", "show", path, "--json").data
    assert found["rules"][0]["file"] == str(path) and found["choice"]["decided_by"] == f"the rules of {path}"
    assert "--model-type" not in cli("rules", "show", path).out
    ran = cli("rules", "show", path, "--layout", "nosuch")
    assert ran.code == 2 and "has no layout 'nosuch'" in ran.err
    ran = cli("rules", "show", tmp_path / "nosuch.yaml")
    assert ran.code != 0 and "cannot read the rule file" in ran.err and "--model-type" not in ran.err
