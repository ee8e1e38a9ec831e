"""The reference has everything: each part is made of the program, and each is on a page."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from docs.generating import ASKED, PARTS, api, commands, hooks, ops, schema
from docs.generating.tables import cell
from tests.guards import LAYERS, ROOT, package_sources
from tests.strategies import VALUE_OPS
from weightloom.engine import RuleError, WeightloomError, expressions
from weightloom.engine import ops as engine_ops
from weightloom.plugins.specs import Specs
from weightloom.rules import default_ops
from weightloom.runtime import cli
from weightloom.runtime.inspecting.installed import KINDS
from weightloom.runtime.terminal.outcome import AT_FAULT, BUG, FINE, INTERRUPTED, TERMINATED

REFERENCE = ROOT / "docs" / "reference"


def test_every_part_is_on_one_page() -> None:
    asked = [part for page in (ROOT / "docs").rglob("*.md") for part in ASKED.findall(page.read_text(encoding="utf-8"))]
    assert sorted(asked) == sorted(PARTS)


def test_every_public_package_is_there() -> None:
    said = set(api.PACKAGES)
    assert said >= {"weightloom", *(f"weightloom.{layer}" for layer in LAYERS)}
    promised = (ROOT / "docs" / "how-to" / "ship-a-plugin.md").read_text(encoding="utf-8")
    assert said >= set(re.findall(r"`(weightloom\.plugins\.(?:layers|configs|quantization|testing))`", promised))


@pytest.mark.parametrize("package", api.PACKAGES)
def test_every_public_name_is_there_once(package: str) -> None:
    module = importlib.import_module(package)
    entries = re.findall(rf"^\.\. [\w:]+:: {re.escape(package)}\.(\w+)$", PARTS[package](), re.MULTILINE)
    assert sorted(entries) == sorted(getattr(module, "__all__", api.names(package)))
    assert entries


def listed() -> Iterator[str]:
    """Yield the commands as they are called."""
    yield from (command.name for command in cli.COMMANDS)
    for family in ("rules", "adapter", "surgery"):
        yield from (f"{family} {command.name}" for command in getattr(cli, f"{family.upper()}_COMMANDS"))


def test_every_command_and_option_is_there() -> None:
    sections = re.split(r"^## weightloom ", PARTS["commands"](), flags=re.MULTILINE)[1:]
    by_name = {section.partition("\n")[0]: section for section in sections}
    assert set(by_name) >= set(listed())
    for parser in commands.parsers(cli.build_parser()):
        section = by_name[parser.prog.removeprefix("weightloom ")]
        spelt = {name for action in parser._actions for name in action.option_strings}
        assert all(cell(text or "") in section for text in (parser.description, parser.epilog))
        assert {name for name in spelt if name not in section} <= {"-h", "--help", "--json", "--quiet", "--debug"}


def test_every_op_and_argument_is_there() -> None:
    sections = re.split(r"^## ", PARTS["ops"](), flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == list(default_ops.names())
    for name, section in zip(default_ops.names(), sections, strict=True):
        assert [each for each in default_ops.parameters(name) if f"| `{each}` |" not in section] == []


def test_what_is_said_of_ops_is_so() -> None:
    found = {getattr(engine_ops, name) for name in default_ops.names()}
    assert {op for op in found if ops.computes(op)} == VALUE_OPS
    one_way = [op for op in found if not op.invertible]
    assert [op.__name__ for op in one_way if "none" not in ops.way_back(op.__name__, op)] == []


@pytest.mark.parametrize("name", ["schema.json", "recipe_schema.json"])
def test_every_field_of_a_file_is_described(name: str) -> None:
    found = schema.read(name)
    lacking = [
        f"{at}.{field}"
        for at, node in schema.objects(found, found["$defs"])
        for field, child in node["properties"].items()
        if not described(child, found["$defs"])
    ]
    assert lacking == []


def described(node: Mapping[str, Any], defs: Mapping[str, Any]) -> bool:
    name = str(node.get("$ref", "")).rpartition("/")[2]
    return bool(node.get("description") or (name and defs[name].get("description")))


@pytest.mark.parametrize(("part", "name"), [("rule files", "schema.json"), ("recipes", "recipe_schema.json")])
def test_every_field_of_a_file_is_there(part: str, name: str) -> None:
    text = PARTS[part]()
    assert [field for field in fields(schema.read(name)) if f"| `{field}` |" not in text] == []


def fields(node: Any) -> set[str]:
    """Give every field that a schema has anywhere, but for the arguments of ops."""
    if isinstance(node, list):
        return set().union(*map(fields, node), set())
    if not isinstance(node, dict):
        return set()
    own = node.get("properties", {})
    below = {key: value for key, value in node.items() if key != "op"}
    return {*(own if isinstance(own, dict) else ()), *fields(list(below.values()))} - {"properties"}


def test_every_hook_and_group_is_there() -> None:
    assert hooks.hooks() == [name for name in vars(Specs) if not name.startswith("_")]
    for name in hooks.hooks():
        assert f"def {name}{hooks.signature(name)}" in PARTS["hooks"]()
    assert [group for group in KINDS.values() if f"`{group}`" not in PARTS["groups"]()] == []


def kinds(error: type[WeightloomError]) -> Iterator[type[WeightloomError]]:
    yield error
    for kind in error.__subclasses__():
        yield from kinds(kind)


def test_every_public_error_is_there() -> None:
    public = {name for layer in ("engine", "rules") for name in importlib.import_module(f"weightloom.{layer}").__all__}
    named = [error.__name__ for error in kinds(WeightloomError) if error.__name__ in public]
    assert [name for name in named if f"* `{name}`" not in PARTS["errors"]()] == []


def test_every_exit_code_is_there_as_in_the_readme() -> None:
    codes = {FINE, AT_FAULT, BUG, INTERRUPTED, TERMINATED, *(error.exit_code for error in kinds(WeightloomError))}
    rows = re.findall(r"^\| (\d+) \| .*$", (REFERENCE / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(row) for row in rows} == codes
    table = re.compile(r"^\| exit code .*?\n\n?(?=[^|]|\Z)", re.MULTILINE | re.DOTALL)
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", REFERENCE / "errors.md")]
    assert len({found[0].strip() for page in pages if (found := table.search(page))}) == 1


def test_every_environment_variable_is_there() -> None:
    texts = (file.read_text(encoding="utf-8") for file in package_sources())
    read = {
        name
        for text in texts
        for name in re.findall(r"^VARIABLE = \"(\w+)\"|\b(WEIGHTLOOM_[A-Z_]+)", text, re.MULTILINE)
    }
    page = (REFERENCE / "environment.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == {name for pair in read for name in pair if name}


def test_every_operator_of_expressions_is_there() -> None:
    page = (REFERENCE / "expressions.md").read_text(encoding="utf-8")
    lines = {line.rpartition(" | ")[2].split(" ")[0]: line for line in page.splitlines() if line.startswith("| `")}
    arithmetic, comparisons = (
        re.findall(r"`([^`]+)`", lines[kind].rpartition(" | ")[0]) for kind in ("arithmetic", "comparisons;")
    )
    assert len(arithmetic) == len(expressions._BINARY) and len(comparisons) == len(expressions._COMPARE)
    for operator in (*arithmetic, *comparisons):
        expressions.Expression(f"a {operator} b")
    for text in ("a / b", "a ** b", "len(a)", "a.b()", "[a for a in b]"):
        with pytest.raises(RuleError):
            expressions.Expression(text)
