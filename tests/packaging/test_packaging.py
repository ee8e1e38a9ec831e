"""What is declared is what is shipped; the `packaging` part builds and installs it, outside the tree."""

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guards import FACADE, LAYERS, ROOT, project
from tests.packaging.building import extra, make_environment, run

TEMPLATES = ROOT / "runtime" / "scaffolding" / "templates"
LINKS = ROOT / "tests" / "typing" / "weightloom"
# huggingface-hub comes with tokenizers, which requires it; nothing here imports it.
FORBIDDEN = {"torch", "transformers", "safetensors", "scipy", "jsonschema"}


def package_data() -> set[Path]:
    """List the data files in the tree that the program reads when it runs."""
    return {
        *(ROOT / "rules").glob("*schema.json"),
        FACADE / "py.typed",
        ROOT / "plugins" / "testing.pyi",
        *(ROOT / "rules" / "data").glob("*.yaml"),
        *(ROOT / "rules" / "recipes").glob("*.yaml"),
        *TEMPLATES.iterdir(),
        *(file for pages in ("picture", "studio") for file in (ROOT / "runtime" / pages / "assets").iterdir()),
    }


def test_every_subpackage_is_shipped() -> None:
    listed = set(project()["tool"]["setuptools"]["packages"])
    inits = (init for layer in LAYERS for init in (ROOT / layer).rglob("__init__.py"))
    found = {"weightloom." + ".".join(init.parent.relative_to(ROOT).parts) for init in inits}
    assert found - {"weightloom.runtime.facade"} <= listed


def test_every_python_file_lies_in_a_shipped_package() -> None:
    files = [file for layer in LAYERS for file in (ROOT / layer).rglob("*.py")]
    assert not [file for file in files if not (file.parent / "__init__.py").exists()]


def test_every_data_file_lies_where_its_kind_is_shipped() -> None:
    data = {f for layer in LAYERS for f in (ROOT / layer).rglob("*") if f.is_file()}
    kinds = {".yaml", ".yml", ".json", ".toml", ".txt", ".typed", ".jinja", ".template", ".pyi"}
    assert {file for file in data if file.suffix in kinds or file.name == "py.typed"} <= package_data()


def test_type_checkers_are_pointed_at_every_layer() -> None:
    assert (LINKS / "__init__.py").resolve() == FACADE / "__init__.py"
    assert (LINKS / "py.typed").resolve() == FACADE / "py.typed"
    assert {layer: (LINKS / layer).resolve() for layer in LAYERS} == {layer: ROOT / layer for layer in LAYERS}
    included = set(project()["tool"]["pyright"]["include"])
    assert {f"tests/typing/weightloom/{layer}" for layer in LAYERS} <= included


def test_comparison_packages_are_no_core_dependency() -> None:
    core = [line.split(">=")[0] for line in project()["project"]["dependencies"]]
    assert not FORBIDDEN & set(core)


def installed_ways(wheel: Path, source_tree: Path) -> dict[str, list[str]]:
    """Give pip's arguments for each way of installing."""
    return {
        "wheel": [f"{wheel}{extra()}"],
        "folder": [f"{source_tree}{extra()}"],
        "editable": ["-e", f"{source_tree}{extra()}"],
    }


@pytest.fixture(scope="module", params=["wheel", "folder", "editable"])
def python(
    request: pytest.FixtureRequest, wheel: Path, source_tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Install in a fresh environment, in each of the three ways; give its interpreter."""
    folder = tmp_path_factory.mktemp(request.param)
    interpreter = make_environment(folder / "venv")
    arguments = installed_ways(wheel, source_tree)[request.param]
    run(interpreter, "-m", "pip", "install", "--quiet", *arguments, folder=folder)
    yield interpreter
    shutil.rmtree(folder / "venv")


@pytest.mark.packaging
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    facade = {"weightloom/" + f.name for f in FACADE.iterdir() if f.is_file()}
    layers = {f for layer in LAYERS for f in (ROOT / layer).rglob("*.py") if not f.is_relative_to(FACADE)}
    data = {f for f in package_data() if f.exists() and not f.is_relative_to(FACADE)}
    expected = facade | {"weightloom/" + f.relative_to(ROOT).as_posix() for f in layers | data}
    shipped = {name for name in names if ".dist-info/" not in name}
    assert shipped == expected
    assert [name for name in names if name.endswith("LICENSE")]


@pytest.mark.packaging
def test_an_installed_package_works_outside_the_repository(python: Path, tmp_path: Path) -> None:
    layers = ", ".join(f"weightloom.{layer}" for layer in LAYERS)
    run(python, "-W", "error", "-c", f"import weightloom, {layers}", folder=tmp_path)
    run(python, "-c", "import mlx.core as mx; assert mx.arange(3).sum().item() == 3", folder=tmp_path)
    listing = (
        "import json; from importlib.resources import files; root = files('weightloom.rules'); "
        "print(json.dumps([(root / 'schema.json').is_file(), "
        "*sorted(f.name for f in (root / 'data').iterdir() if f.name.endswith('.yaml'))]))"
    )
    in_tree = sorted(file.name for file in (ROOT / "rules" / "data").glob("*.yaml"))
    assert json.loads(run(python, "-c", listing, folder=tmp_path)) == [True, *in_tree]


@pytest.mark.packaging
def test_the_command_is_installed(python: Path, tmp_path: Path) -> None:
    assert "inspect" in run(python.parent / "weightloom", "--help", folder=tmp_path)
    assert "inspect" in run(python, "-m", "weightloom.runtime", "--help", folder=tmp_path)


@pytest.mark.packaging
def test_an_install_leaves_the_comparison_packages_out(python: Path, tmp_path: Path) -> None:
    listed = json.loads(run(python, "-m", "pip", "list", "--format=json", folder=tmp_path))
    names = {entry["name"].lower().replace("_", "-") for entry in listed}
    assert "weightloom" in names
    assert not FORBIDDEN & names


@pytest.mark.packaging
def test_an_edit_is_seen_only_by_the_editable_install(
    python: Path, source_tree: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    new = source_tree / "rules" / "seen_at_once.py"
    new.write_text("", encoding="utf-8")
    probe = "from importlib.util import find_spec; print(find_spec('weightloom.rules.seen_at_once') is not None)"
    try:
        seen = run(python, "-c", probe, folder=tmp_path).strip()
    finally:
        new.unlink()
    assert seen == str(request.node.callspec.params["python"] == "editable")
