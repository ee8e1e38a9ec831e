"""Plugins of other packages, built into wheels and installed beside the package: found, settled, or refused by name."""

import json
import shutil
from pathlib import Path

import pytest

from tests.guards import ROOT
from tests.packaging.building import ended, extra, make_environment, run
from weightloom.runtime.commands.new_plugin import KINDS

pytestmark = pytest.mark.packaging

EXAMPLES = (ROOT / "tests" / "plugins" / "example", *sorted((ROOT / "tests" / "plugins" / "distributions").iterdir()))
WRITE = """
import sys
from pathlib import Path
from weightloom.plugins import PluginManager
from weightloom.plugins.testing import Sample, write_checkpoint
name = sys.argv[1]
sizes = {"vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
sample = Sample("plain", {"model_type": name, **sizes})
write_checkpoint(sample, PluginManager().architecture(name, name), Path("checkpoint"))
"""
LOAD = """
import sys, weightloom
print(weightloom.load("checkpoint", architecture=sys.argv[1]).architecture.name)
"""
MIRRORED = """
schema: 1
family: mirrored
applies_to: {model_types: [mirrored]}
layouts:
  hf:
    rules:
      - convert: {from: 'a', to: 'b', ops: [{Mirror: {}}]}
        why: 'To be seen in a plan.'
"""


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package, pytest, and every example, each from a wheel of its own; give the interpreter."""
    folder = tmp_path_factory.mktemp("plugins")
    interpreter = make_environment(folder / "venv")
    run(
        interpreter,
        "-m",
        "pip",
        "install",
        "--quiet",
        f"{wheel}{extra()}",
        "pytest>=8",
        "setuptools>=77",
        folder=folder,
    )
    # Copies, for a build writes beside its sources.
    sources = [shutil.copytree(each, folder / "sources" / each.name) for each in EXAMPLES]
    build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder / "wheels")
    run(interpreter, *build, *sources, folder=folder)
    wheels = sorted((folder / "wheels").glob("*.whl"))
    assert len(wheels) == len(EXAMPLES)
    run(interpreter, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", *wheels, folder=folder)
    return interpreter


@pytest.mark.case("C84")
def test_every_plugin_is_listed_and_what_is_wrong_is_named(python: Path, tmp_path: Path) -> None:
    """C84: nothing of ours is edited; what cannot be used takes nothing else down."""
    done = ended(python.parent / "weightloom", "plugins", "--json", folder=tmp_path)
    said = json.loads(done.stdout)
    assert done.returncode == 1
    assert {"weightloom", "weightloom-my-llama", "weightloom-other-llama"} <= {
        row["distribution"] for row in said["plugins"]
    }
    problems = "\n".join(said["problems"])
    assert "broken_net:PLUGIN (weightloom-broken)" in problems and "a_package_that_nobody_has" in problems
    assert "(weightloom-from-tomorrow)" in problems and "interface 99" in problems and "from 1 to" in problems
    assert "weightloom-my-llama:my_llama" in problems and "weightloom-other-llama:other_llama" in problems
    assert "llama" in run(python.parent / "weightloom", "arch", "llama", folder=tmp_path)


def test_a_clash_is_settled_by_an_explicit_choice(python: Path, tmp_path: Path) -> None:
    run(python, "-c", WRITE, "my_llama", folder=tmp_path)
    refused = ended(python.parent / "weightloom", "plan", "checkpoint", folder=tmp_path)
    assert refused.returncode == 1 and "weightloom-other-llama:other_llama" in refused.stderr
    assert "--architecture" in refused.stderr
    for choice in ("my_llama", "weightloom-my-llama:my_llama"):
        assert run(python, "-c", LOAD, choice, folder=tmp_path).strip() == "my_llama"
    config = tmp_path / "checkpoint" / "config.json"
    said = {**json.loads(config.read_text(encoding="utf-8")), "weightloom": {"architecture": "my_llama"}}
    config.write_text(json.dumps(said), encoding="utf-8")
    run(python.parent / "weightloom", "plan", "checkpoint", folder=tmp_path)


@pytest.mark.case("C83")
def test_a_rule_without_a_way_back_is_named_when_its_plugin_is_registered(python: Path, tmp_path: Path) -> None:
    """C83: at once, and not after training."""
    said = json.loads(ended(python.parent / "weightloom", "plugins", "--json", folder=tmp_path).stdout)
    (note,) = (note for note in said["notes"] if "one_way_net" in note)
    assert "Forgetful" in note


@pytest.mark.parametrize("model_type", ["broken_net", "tomorrow_net"])
def test_a_plugin_that_cannot_be_used_is_refused_by_name(python: Path, model_type: str, tmp_path: Path) -> None:
    done = ended(python.parent / "weightloom", "arch", model_type, folder=tmp_path)
    assert done.returncode == 1
    assert "weightloom-broken" in done.stderr or "weightloom-from-tomorrow" in done.stderr


def test_rules_and_ops_of_other_packages_are_known(python: Path, tmp_path: Path) -> None:
    weightloom = python.parent / "weightloom"
    assert "night.yaml" in run(weightloom, "rules", "show", "night", folder=tmp_path)
    (tmp_path / "mirrored.yaml").write_text(MIRRORED, encoding="utf-8")
    run(weightloom, "rules", "lint", "mirrored.yaml", folder=tmp_path)
    assert "Mirror" in run(weightloom, "rules", "show", "mirrored.yaml", folder=tmp_path)


def test_a_container_is_opened_by_its_source(python: Path, tmp_path: Path) -> None:
    run(python, "-c", WRITE, "llama", folder=tmp_path)
    folder = tmp_path / "checkpoint"
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "model.safetensors").rename(folder / "oak.plank")
    (folder / "config.json").unlink()
    (folder / "crate.json").write_text(json.dumps({"planks": ["oak.plank"], "config": config}), encoding="utf-8")
    said = json.loads(run(python.parent / "weightloom", "verify", "checkpoint", "--json", folder=tmp_path))
    assert said["equal"] and said["tensors"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_passes_its_own_tests_from_its_wheel(kind: str, python: Path, tmp_path: Path) -> None:
    package = tmp_path / "package"
    run(
        python.parent / "weightloom",
        "new-plugin",
        f"fresh-{kind}",
        "--kind",
        kind,
        "--directory",
        package,
        folder=tmp_path,
    )
    build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path, package)
    run(python, *build, folder=tmp_path)
    (built,) = tmp_path.glob("*.whl")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", built, folder=tmp_path)
    # The tests alone: what they import is what is installed.
    tests = shutil.copytree(package / "tests", tmp_path / "tests")
    assert " passed" in run(python, "-m", "pytest", "-q", "-W", "error", tests, folder=tmp_path)
