"""Imports point one way (runtime -> plugins -> rules -> engine), without cycles, to declared packages."""

import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.guards import (
    LAYERS,
    ROOT,
    imported_at_start,
    imported_names,
    imported_when_run,
    module_name,
    package_sources,
    project,
    sources,
)

THIRD_PARTY = {
    "engine": {"mlx", "numpy", "regex"},
    "rules": {"regex", "yaml"},
    "plugins": {"mlx", "numpy", "pluggy"},
    "runtime": {"jinja2", "mlx", "numpy", "tokenizers", "tqdm"},
}
# The kit runs under pytest, which is installed where it is used.
WITH_PYTEST = "runtime/conformance"
IMPORT_NAME_OF = {"pyyaml": "yaml"}


def violations(layer: str, text: str, more: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield what a file of `layer` must not import, with the reason; `more` are packages that it may."""
    below = LAYERS[: LAYERS.index(layer) + 1]
    for name in imported_names(text):
        root, *rest = name.split(".")
        if not root:
            yield f"{name}: relative import"
        elif root in LAYERS:
            yield f"{name}: import weightloom.{root}"
        elif root == "weightloom" and (not rest or rest[0] not in below):
            yield f"{name}: {layer} is below {rest[0] if rest and rest[0] in LAYERS else 'the facade'}"
    for name in imported_when_run(text):
        root = name.split(".")[0]
        if root and root not in {"weightloom", *LAYERS, *sys.stdlib_module_names, *THIRD_PARTY[layer], *more}:
            yield f"{name}: not a package that {layer} may use"


def find_cycle(imports: dict[str, set[str]]) -> list[str]:
    """Give one import cycle, first module repeated at the end, or an empty list."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _resolve(name: str, modules: set[str]) -> str | None:
    """Give the module that an imported name is, or is an attribute of."""
    return next((m for m in (name, name.rpartition(".")[0]) if m in modules), None)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_down(layer: str) -> None:
    found = {
        file.name: list(violations(layer, file.read_text(encoding="utf-8"), _more(file))) for file in sources(layer)
    }
    assert not {name: wrong for name, wrong in found.items() if wrong}


def _more(file: Path) -> frozenset[str]:
    return frozenset({"pytest"} if file.is_relative_to(ROOT / WITH_PYTEST) else ())


@pytest.mark.parametrize(
    "planted",
    [
        "from weightloom import runtime",
        "import weightloom",
        "import weightloom.rules",
        "from weightloom.rules.loader import load_rules",
        "import engine.header",
        "from engine import header",
        "from . import header",
        "from ..rules import loader",
        "import torch",
        "def f():\n    from transformers import AutoModel",
        "if TYPE_CHECKING:\n    from weightloom.plugins import Architecture",
        "import yaml",
    ],
)
def test_the_guard_sees_a_planted_violation(planted: str) -> None:
    assert list(violations("engine", planted))


def test_the_guard_lets_good_imports_pass() -> None:
    text = "import json\nimport numpy\nfrom weightloom.engine import spec\nimport weightloom.engine.checkpoints.header"
    assert not list(violations("engine", text))
    assert not list(violations("engine", "if TYPE_CHECKING:\n    from typing_extensions import Buffer"))
    assert not list(violations("rules", "import yaml\nfrom weightloom.engine import RuleSet"))


def test_nothing_imports_the_kit() -> None:
    kit = "weightloom.runtime.conformance"
    users = [file for file in package_sources() if not module_name(file).startswith(kit)]
    names = {name for file in users for name in imported_names(file.read_text(encoding="utf-8"))}
    assert not {name for name in names if name.startswith((kit, "weightloom.plugins.testing"))}


def test_no_import_cycles() -> None:
    """A value's method may import the step that it stands for when it is called; nothing else looks back."""
    modules = {module_name(file): file for file in package_sources() if file.parent.name != "facade"}
    imports: dict[str, set[str]] = {name: set() for name in modules}
    for name, file in modules.items():
        targets = (_resolve(n, set(modules)) for n in imported_at_start(file.read_text(encoding="utf-8")))
        imports[name] = {target for target in targets if target and target != name}
    assert find_cycle(imports) == []


@pytest.mark.parametrize("layer", LAYERS)
def test_no_cycles_between_folders(layer: str) -> None:
    """Data flows one way through a layer's folders. What lies beside them serves all, or stands above them."""
    folders: dict[str, set[str]] = {}
    for file in sources(layer):
        own = _folder(module_name(file))
        if own:
            names = imported_when_run(file.read_text(encoding="utf-8"))
            folders.setdefault(own, set()).update(found for name in names if (found := _folder(name)) not in ("", own))
    assert find_cycle(folders) == []


def _folder(module: str) -> str:
    """Give the folder of a layer that a module is in, `engine/ops`; empty for one at the layer's root."""
    root, *rest = module.split(".")
    inside = root == "weightloom" and len(rest) > 1 and (ROOT / rest[0] / rest[1]).is_dir()
    return f"{rest[0]}/{rest[1]}" if inside else ""


def test_the_cycle_guard_sees_a_planted_cycle() -> None:
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert not find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_every_third_party_import_is_a_declared_core_dependency() -> None:
    names = {line.split(">=")[0].lower() for line in project()["project"]["dependencies"]}
    declared = {IMPORT_NAME_OF.get(name, name) for name in names}
    assert declared == set().union(*THIRD_PARTY.values())


def test_every_core_dependency_is_imported_by_a_layer_that_may() -> None:
    for name in sorted(set().union(*THIRD_PARTY.values())):
        users = [layer for layer, allowed in THIRD_PARTY.items() if name in allowed]
        texts = [file.read_text(encoding="utf-8") for layer in users for file in sources(layer)]
        roots = {imported.split(".")[0] for text in texts for imported in imported_when_run(text)}
        assert name in roots, f"{name} is declared and never imported"
