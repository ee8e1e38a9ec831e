"""Exit codes, JSON, errors: what every command has in common."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases.fixtures import const
from tests.runtime.models import classifier, runnable, sentence_files
from tests.runtime.support import T0_CONFIG, Cli, checkpoint
from weightloom.engine.errors import StorageError
from weightloom.runtime import cli as cli_module
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import Outcome

RULE_FILE = """schema: 1
family: mine
applies_to: {model_types: [mine]}
layouts:
  hf:
    rules:
      - rename: {from: '^net\\.', to: 'model.'}
"""


def rule_file(folder: Path) -> Path:
    path = folder / "mine.yaml"
    path.write_text(RULE_FILE)
    return path


def commands(folder: Path) -> list[list[str]]:
    """One working call of every command."""
    path, rules = str(checkpoint(folder / "t0")), str(rule_file(folder))
    names = folder / "names.txt"
    names.write_text("net.a\nb\n")
    decoder, encoder = str(runnable(folder / "decoder")), str(sentence_files(runnable(folder / "encoder", "bert")))
    return [
        ["inspect", path],
        ["plan", path],
        ["explain", path, "model.norm.weight"],
        ["verify", path],
        ["convert", path, str(folder / "out")],
        ["generate", decoder, "-p", "hello", "--max-tokens", "2"],
        ["embed", encoder, "one", "two"],
        ["rerank", str(classifier(folder / "classifier")), "one", "two", "three"],
        ["arch"],
        ["arch", "llama"],
        ["plugins"],
        ["new-plugin", "my-arch", "--directory", str(folder / "new")],
        ["rules", "new", path],
        ["rules", "lint", rules],
        ["rules", "show", "llama"],
        ["rules", "test", rules, "--names", str(names)],
        ["rules", "schema"],
    ]


def test_every_command_gives_one_json_object_of_schema_1(cli: Cli, tmp_path: Path) -> None:
    calls = commands(tmp_path)
    for call in calls:
        ran = cli(*call, "--json")
        assert ran.code == 0, ran
        assert ran.data["schema"] == 1
        assert ran.data["command"] == " ".join(call[: 2 if call[0] == "rules" else 1])
        assert ran.err == ""
    unending = {"studio"}
    assert {call[0] for call in calls} == {*(command.name for command in cli_module.COMMANDS), "rules"} - unending


def test_every_command_gives_text_and_an_answer_when_quiet(cli: Cli, tmp_path: Path) -> None:
    for call in commands(tmp_path):
        loud = cli(*call)
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        quiet = cli(*call, "--quiet", *(["--overwrite"] if call[0] == "convert" else []))
        assert (loud.code, quiet.code, loud.err, quiet.err) == (0, 0, "", "")
        assert loud.out.startswith(quiet.out.rstrip("\n"))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["inspekt"],
        ["inspect"],
        ["inspect", "a", "b"],
        ["plan", "x", "--limit", "-1"],
        ["plan", "x", "--limit", "many"],
        ["convert", "x", "y", "--dtype", "f8"],
        ["generate", "x"],
        ["generate", "x", "-p", "y", "--max-tokens", "-1"],
        ["embed"],
        ["embed", "x", "y", "--pooling", "median"],
        ["convert", "x", "y", "--max-shard-size", "big"],
        ["rules"],
        ["rules", "test", "x"],
    ],
)
def test_usage_errors_are_2_in_text_and_json(cli: Cli, arguments: list[str]) -> None:
    ran = cli(*arguments)
    assert ran.code == 2 and ran.out == ""
    assert ran.err.startswith("error: ") and "to do: see `weightloom" in ran.err and "Traceback" not in ran.err
    ran = cli(*arguments, "--json")
    assert ran.code == 2 and ran.data["schema"] == 1 and ran.data["error"]["kind"] == "UsageError"


def test_bad_input_is_1(cli: Cli, tmp_path: Path) -> None:
    ran = cli("inspect", tmp_path / "nothing", "--json")
    assert ran.code == 1
    error = ran.data["error"]
    assert error["kind"] == "CheckpointError" and error["file"] == str(tmp_path / "nothing")
    assert {"kind", "message", "seen", "expected", "hint", "file", "tensor", "rule", "field"} == set(error)


def test_a_disk_error_is_3(cli: Cli, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "t0")
    ran = cli("verify", path, "--workdir", tmp_path / "not there")
    assert ran.code == 3 and "not there" in ran.err


def test_no_room_is_3(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = checkpoint(tmp_path / "t0")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))
    ran = cli("verify", path, "--workdir", tmp_path)
    assert ran.code == 3 and "10 B are free" in ran.err and "--workdir" in ran.err


def test_a_missing_mlx_is_4(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = checkpoint(tmp_path / "t0")
    monkeypatch.setitem(sys.modules, "mlx.core", None)
    for call in (
        ["verify", path],
        ["convert", path, tmp_path / "out", "--dtype", "bf16"],
        ["generate", path, "-p", "x"],
        ["embed", path, "x"],
        ["plugins"],
        ["arch"],
        ["arch", "llama"],
    ):
        ran = cli(*call)
        assert ran.code == 4 and "weightloom[cpu]" in ran.err
    assert not (tmp_path / "out").exists()


def failing(error: BaseException) -> Command:
    def run(_: object) -> Outcome:
        raise error

    return Command("inspect", "fails", lambda _: None, run)


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (KeyError("x"), 70, "Bug"),
        (RecursionError("deep"), 70, "Bug"),
        (StorageError("disk full"), 3, "StorageError"),
        (PermissionError(13, "Permission denied", "some/file"), 3, "StorageError"),
    ],
)
def test_what_a_command_raises_becomes_an_exit_code(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, kind: str
) -> None:
    monkeypatch.setattr(cli_module, "COMMANDS", (failing(error),))
    ran = cli("inspect")
    assert ran.code == code and "Traceback" not in ran.err and ran.out == ""
    assert ("this is a bug" in ran.err) == (code == 70)
    ran = cli("inspect", "--json", "--debug")
    assert ran.code == code and ran.data["error"]["kind"] == kind
    assert "Traceback" in ran.err


def test_help_and_version_leave_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["--version"], ["rules", "--help"], ["convert", "--help"]):
        with pytest.raises(SystemExit) as left:
            cli_module.main(arguments)
        assert left.value.code == 0
        assert "weightloom" in capsys.readouterr().out


def python(*arguments: str, folder: Path, code: str = "") -> subprocess.CompletedProcess[str]:
    start = ["-c", code] if code else ["-m", "weightloom.runtime"]
    return subprocess.run([sys.executable, *start, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "t0")
    done = python("inspect", str(path), "--json", folder=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)["tensors"] == 21
    assert python("inspect", "nothing", folder=tmp_path).returncode == 1


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "t0")
    done = subprocess.run(
        f'"{sys.executable}" -m weightloom.runtime plan "{path}" --json | true; echo ${{PIPESTATUS[0]}}',
        shell=True,
        executable="/bin/bash",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


PROBE = """
import json, sys
from weightloom.runtime.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""


def test_looking_and_planning_load_no_mlx(tmp_path: Path) -> None:
    path = str(checkpoint(tmp_path / "t0"))
    for call in (
        ["inspect", path, "--estimate-memory", "--open-target"],
        ["plan", path, "--open-target"],
        ["explain", path, "lm_head.weight", "--open-target"],
        ["rules", "show", "mixtral"],
        ["rules", "lint", str(rule_file(tmp_path))],
    ):
        done = python(*call, folder=tmp_path, code=PROBE)
        code, modules = json.loads(done.stdout.splitlines()[-1])
        assert code == 0
        unwanted = {"mlx", "numpy", "torch", "transformers", "safetensors", "pluggy", "tqdm", "jsonschema"}
        assert not unwanted & set(modules), call


def test_names_cannot_write_to_the_terminal(cli: Cli, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "t0", {"a\x1b[31m\u202e.w": const(1, 2)})
    ran = cli("inspect", path)
    assert ran.code == 0 and "\x1b" not in ran.out and "\u202e" not in ran.out
    assert "a\\x1b[31m\\u202e.w" in ran.out


def test_an_ascii_terminal_gets_escapes(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "t0", {"größe.w": const(1, 2)})
    done = subprocess.run(
        [sys.executable, "-m", "weightloom.runtime", "inspect", str(path)],
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 and rb"gr\xf6\xdfe.w" in done.stdout


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = line.replace("weightloom", f'"{sys.executable}" -m weightloom.runtime')
    return subprocess.run(["/bin/bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_output_that_cannot_be_written_is_3(tmp_path: Path) -> None:
    checkpoint(tmp_path / "t0")
    done = shell("weightloom plan t0 >/dev/full", tmp_path)
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert "standard output: cannot write: disk full" in done.stderr


def test_without_an_output_only_the_code_is_left(tmp_path: Path) -> None:
    checkpoint(tmp_path / "t0")
    done = shell("weightloom plan t0 >&-", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


some = settings(
    max_examples=max(15, settings().max_examples // 10),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
bad_values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
config_keys = st.sampled_from([*T0_CONFIG, "dtype", "text_config", "quantization_config", "rope_parameters"])


@settings(
    max_examples=max(15, settings().max_examples // 10), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(config_keys, bad_values | st.dictionaries(config_keys, bad_values, max_size=2), max_size=4))
def test_no_config_is_a_bug(cli: Cli, tmp_path: Path, changes: dict[str, object]) -> None:
    path = checkpoint(tmp_path, config={**T0_CONFIG, **changes})
    for command in (
        ["inspect", path, "--estimate-memory", "--open-target"],
        ["plan", path],
        ["explain", path, "lm_head.weight"],
    ):
        ran = cli(*command)
        assert ran.code in (0, 1), ran


@settings(
    max_examples=max(15, settings().max_examples // 10), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=80), st.sampled_from(["config.json", "model.safetensors", "model.safetensors.index.json"]))
def test_no_file_is_a_bug(cli: Cli, tmp_path: Path, content: bytes, name: str) -> None:
    path = checkpoint(tmp_path)
    (path / name).write_bytes(content)
    for command in ("inspect", "plan", "verify"):
        ran = cli(command, path)
        assert ran.code in (0, 1), ran
    (path / name).unlink()
