"""load: each architecture, each argument, each refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.cases.fixtures import filled, t0, write
from tests.runtime.models import config_of, runnable, write_model
from tests.runtime.support import checkpoint
from weightloom.engine import Checkpoint, RuleSet, WeightRenaming
from weightloom.engine.errors import CheckpointError, ConfigError, PlanError, PluginError, RuleError, UsageError
from weightloom.plugins.modules.binding import parameters
from weightloom.runtime import load

TOKENS = [[1, 5, 9, 200, 3]]


def without(folder: Path, *names: str) -> None:
    """Write a checkpoint anew without some tensors."""
    arrays = mx.load(str(folder / "model.safetensors"))
    kept = {name: np.array(array) for name, array in arrays.items() if name not in names}
    write(folder / "model.safetensors", kept)


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_a_generator_and_an_encoder_load_and_run(tmp_path: Path, name: str) -> None:
    m = load(write_model(tmp_path, name))
    out = m.model(mx.array(TOKENS))
    assert out.shape == (1, 5, 16 if name == "bert" else 260)
    assert mx.isfinite(out).all().item()
    assert (m.task, m.layout, m.notes) == ("embed" if name == "bert" else "generate", "hf", ())
    assert m.report is m.plan.report and not m.report.missing


@pytest.mark.parametrize("path", ["model.safetensors", ""])
def test_a_file_and_its_directory_are_the_same_model(tmp_path: Path, path: str) -> None:
    m = load(runnable(tmp_path) / path)
    assert m.tokenizer is not None and m.config == config_of("llama")


def test_parameters_are_the_bytes_of_the_file(tmp_path: Path) -> None:
    m = load(write_model(tmp_path, "llama"))
    found, stored = parameters(m.model), mx.load(str(tmp_path / "model.safetensors"))
    assert found.keys() == stored.keys()
    assert all(mx.array_equal(found[name], stored[name]).item() for name in stored)


@pytest.mark.parametrize(("given", "dtype"), [("bfloat16", mx.bfloat16), ("f16", mx.float16), (None, mx.float32)])
def test_a_dtype_casts_and_none_does_not(tmp_path: Path, given: str | None, dtype: mx.Dtype) -> None:
    m = load(write_model(tmp_path, "llama"), given)
    assert {array.dtype for array in parameters(m.model).values()} == {dtype}


def test_an_unknown_dtype_is_refused_before_a_file_is_opened(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="dtype 'int8'"):
        load(tmp_path / "nothing", "int8")


def test_the_callers_rules_act_first(tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    arrays = {f"net.{k}": np.array(v) for k, v in mx.load(str(tmp_path / "model.safetensors")).items()}
    write(tmp_path / "model.safetensors", arrays)
    with pytest.raises(PlanError, match=r"net\."):
        load(tmp_path)
    m = load(tmp_path, rules=RuleSet([WeightRenaming(r"^net\.", "")]))
    assert not m.report.missing
    (tmp_path / "mine.yaml").write_text(
        "schema: 1\nfamily: mine\nlayouts:\n  hf:\n    rules:\n      - {rename: {from: '^net\\.', to: ''}, why: 'x'}\n"
    )
    assert load(tmp_path, rules=tmp_path / "mine.yaml").plan.params == m.plan.params


def test_strict_refuses_what_nothing_wants_and_lenient_reports_it(tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    arrays = {k: np.array(v) for k, v in mx.load(str(tmp_path / "model.safetensors")).items()}
    write(tmp_path / "model.safetensors", {**arrays, **filled({"extra.w": (2,)})})
    with pytest.raises(PlanError, match=r"extra\.w"):
        load(tmp_path)
    assert load(tmp_path, strict=False).report.unexpected == ("extra.w",)


def test_a_lone_missing_parameter_is_named(tmp_path: Path) -> None:
    name = "encoder.layer.1.attention.self.key.bias"
    without(write_model(tmp_path, "bert"), name)
    with pytest.raises(PlanError, match=name):
        load(tmp_path)
    m = load(tmp_path, strict=False)
    assert m.report.missing == (name,) and any(name in note for note in m.notes)
    mx.eval(m.model(mx.array(TOKENS)))


def test_a_module_with_nothing_is_refused_even_leniently(tmp_path: Path) -> None:
    without(write_model(tmp_path, "llama"), "model.norm.weight")
    with pytest.raises(PlanError, match=r"model\.norm\.weight"):
        load(tmp_path, strict=False)


def test_the_pooler_is_built_where_the_checkpoint_has_one(tmp_path: Path) -> None:
    without(write_model(tmp_path, "bert"), "pooler.dense.weight", "pooler.dense.bias")
    assert "pooler" not in load(tmp_path).model


def test_the_error_for_an_unknown_type_names_the_nearest_and_what_to_install(tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    (tmp_path / "config.json").write_text(json.dumps(config_of("llama", model_type="lama")))
    with pytest.raises(PluginError) as raised:
        load(tmp_path)
    text = str(raised.value)
    assert "'lama'" in text and "did you mean llama" in text and "`weightloom arch` lists them" in text
    assert "install a package that offers it" in text and "weightloom.plugins" in text


@pytest.mark.case("C22")
@pytest.mark.parametrize("spelling", ["Qwen3_MoE", "qwen3-moe"])
def test_c22_a_model_type_of_another_spelling_is_read_by_the_same_rules(tmp_path: Path, spelling: str) -> None:
    """C22: the experts, one tensor each on disk, are stacked as ever."""
    write_model(tmp_path, "qwen3_moe")
    (tmp_path / "config.json").write_text(json.dumps(config_of("qwen3_moe", model_type=spelling)))
    m = load(tmp_path)
    assert m.architecture.name == "qwen3_moe" and not m.report.missing and m.config["model_type"] == spelling


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model_type": None}, CheckpointError),
        ({"hidden_size": "wide"}, ConfigError),
        ({"rope_scaling": {"rope_type": "foo", "factor": 2.0}}, ConfigError),
        ({"num_attention_heads": 5}, ConfigError),
        ({"vocab_size": 16}, PlanError),
    ],
)
def test_a_config_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, object], error: type[Exception]) -> None:
    write_model(tmp_path, "llama")
    (tmp_path / "config.json").write_text(json.dumps(config_of("llama", **change)))
    with pytest.raises(error) as raised:
        load(tmp_path)
    assert next(iter(change)).split("_")[0] in str(raised.value) or error is PlanError
    assert str(tmp_path / "config.json") in str(raised.value) or error is PlanError


def test_no_model_type_and_no_config_are_named(tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match="no model_type"):
        load(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"no config\.json"):
        load(tmp_path)
    with pytest.raises(CheckpointError, match="nothing"):
        load(tmp_path / "nothing")


@pytest.mark.case("C84")
def test_code_in_a_checkpoint_is_never_run_and_said_to_be_ignored(tmp_path: Path) -> None:
    """C84."""
    trap = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
    auto_map = {"AutoModelForCausalLM": "modeling_evil.EvilForCausalLM"}
    write_model(tmp_path, "llama", config_of("llama", auto_map=auto_map, model_file="model.py"))
    for name in ("modeling_evil.py", "model.py", "configuration_evil.py"):
        (tmp_path / name).write_text(trap)
    from weightloom.runtime import inspect

    for notes in (load(tmp_path).notes, inspect(tmp_path).notes):
        said = "\n".join(notes)
        assert "auto_map" in said and "model_file" in said and "never run" in said
        assert "configuration_evil.py, model.py, modeling_evil.py" in said
    assert not (tmp_path / "ran").exists()


def test_a_failed_load_lets_go_of_its_files(tmp_path: Path) -> None:
    without(write_model(tmp_path, "llama"), "model.norm.weight")
    fds = Path("/dev/fd")
    before = len(list(fds.iterdir()))
    for _ in range(3):
        with pytest.raises(PlanError):
            load(tmp_path)
    # Files of earlier loads may have been closed meanwhile.
    assert len(list(fds.iterdir())) <= before


def test_shards_with_an_index_load_too(tmp_path: Path) -> None:
    plain = load(write_model(tmp_path / "a", "mixtral"))
    with Checkpoint.open(tmp_path / "a") as checkpoint:
        names = list(checkpoint.tensors)
    arrays = {k: np.array(v) for k, v in mx.load(str(tmp_path / "a" / "model.safetensors")).items()}
    sharded = tmp_path / "b"
    sharded.mkdir()
    halves = {f"model-0000{n + 1}-of-00002.safetensors": names[n::2] for n in range(2)}
    for file, part in halves.items():
        write(sharded / file, {name: arrays[name] for name in part})
    index = {"weight_map": {name: file for file, part in halves.items() for name in part}}
    (sharded / "model.safetensors.index.json").write_text(json.dumps(index))
    (sharded / "config.json").write_bytes((tmp_path / "a" / "config.json").read_bytes())
    again = load(sharded)
    assert mx.array_equal(plain.model(mx.array(TOKENS)), again.model(mx.array(TOKENS))).item()


def test_generating_imports_neither_torch_nor_transformers(tmp_path: Path) -> None:
    runnable(tmp_path)
    probe = (
        "import sys; from weightloom.runtime.cli import main; "
        f"code = main(['generate', {str(tmp_path)!r}, '-p', 'hi', '--max-tokens', '3', '--json']); "
        "print(code, sorted({'torch', 'transformers', 'safetensors', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    code, modules = done.stdout.splitlines()[-1].split(" ", 1)
    assert code == "0" and "torch" not in modules and "transformers" not in modules and "safetensors" not in modules


def test_rules_may_be_given_as_they_are(tmp_path: Path) -> None:
    """A set of rules, a list of them, or the path of a file; anything else is refused by name."""
    arrays = {f"net.{name}": array for name, array in t0().items()}
    path = checkpoint(tmp_path, arrays)
    rule = WeightRenaming(r"^net\.", "")
    for rules in (RuleSet([rule]), [rule], (rule,)):
        assert not load(path, rules=rules).report.missing
    wrong: Any = 5
    with pytest.raises(UsageError, match="rules is 5"):
        load(path, rules=wrong)
    wrong = ["net"]
    with pytest.raises(RuleError, match="'net' is not a rule"):
        load(path, rules=wrong)
