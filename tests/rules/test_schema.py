"""schema.json is for editors: it says what the loader says, as far as a schema can."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.rules.test_parse import EVERY_RULE, HEAD
from tests.rules.write import said_of, with_rules
from weightloom.rules import head, parse
from weightloom.rules.document import Layout
from weightloom.rules.forms import FORMS, OPTIONS
from weightloom.rules.op_table import Ops
from weightloom.rules.reading import MAX_TEXT
from weightloom.rules.sources import SHIPPED

SCHEMA: dict[str, Any] = json.loads(files("weightloom.rules").joinpath("schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def is_valid(text: str) -> bool:
    return bool(VALIDATOR.is_valid(yaml.safe_load(text)))


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_file_is_valid(file: Any) -> None:
    errors = [
        f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(yaml.safe_load(file.read_bytes()))
    ]
    assert not errors


@pytest.mark.parametrize("text", [HEAD, with_rules(EVERY_RULE)])
def test_what_the_loader_takes_is_valid(text: str) -> None:
    assert said_of(text) == []
    assert is_valid(text)


LAYOUT = "layouts: {hf: {rules: []}}\n"
WRONG = [
    "schema: 2\nfamily: a\n" + LAYOUT,
    "family: a\n" + LAYOUT,
    "schema: 1\nfamily: 'a b'\n" + LAYOUT,
    "schema: 1\nfamily: a\n",
    "schema: 1\nfamily: a\nfamly: b\n" + LAYOUT,
    "schema: 1\nfamily: a\nextends: a/b/c\n" + LAYOUT,
    "schema: 1\nfamily: a\ntree: [{path: x}]\n" + LAYOUT,
    "schema: 1\nfamily: a\napplies_to: {model_types: a}\n" + LAYOUT,
    "schema: 1\nfamily: a\nlayouts: {'a/b': {rules: []}}\n",
    "schema: 1\nfamily: a\nlayouts: {}\n",
    "schema: 1\nfamily: a\nlayouts: {hf: {}}\n",
    *map(
        with_rules,
        [
            "- x",
            "- why: x",
            "- {rename: {from: a, to: b}, drop: [c]}",
            "- rename: {from: a}",
            "- rename: {from: a, to: [b]}",
            "- rename: {from: [], to: b}",
            f"- drop: ['{'a' * (MAX_TEXT + 1)}']",
            "- {rename: {from: a, to: b}, fidelity: exakt}",
            "- {rename: {from: a, to: b}, optional: true}",
            "- prefix: {add: a, remove: b}",
            "- prefix: {below: b}",
            "- group: []",
            "- tie: {parameter: a}",
            "- convert: {from: a, to: b, ops: []}",
            "- convert: {from: a, to: b, ops: [Chunk]}",
            "- convert: {from: a, to: b, ops: [{Chunk: {dm: 0}}]}",
            "- convert: {from: a, to: b, ops: [{Chunk: {dim: a}}]}",
            "- convert: {from: a, to: b, ops: [{Chunk: {dim: 0}, Split: {dim: 0}}]}",
        ],
    ),
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_refused_by_both(text: str) -> None:
    assert said_of(text)
    assert not is_valid(text)


def test_the_keys_agree() -> None:
    defs = SCHEMA["$defs"]
    assert set(SCHEMA["properties"]) == {*head.REQUIRED, *head.OPTIONAL, "layouts"}
    assert set(SCHEMA["required"]) == set(head.REQUIRED)
    assert set(defs["identifiers"]["properties"]) == set(head.IDENTIFIER_KEYS)
    assert set(defs["sub_model"]["properties"]) == set(head.TREE_KEYS)
    assert set(defs["layout"]["properties"]) == set(parse.LAYOUT_KEYS)
    assert set(defs["rule"]["properties"]) == {*FORMS, *OPTIONS}
    assert {branch["required"][0] for branch in defs["rule"]["oneOf"]} == set(FORMS)
    assert set(Layout.__dataclass_fields__) >= {"extends"}


def test_the_ops_and_their_arguments_agree() -> None:
    ops, written = Ops(), SCHEMA["$defs"]["op"]["properties"]
    assert set(written) == set(ops.names())
    for name in ops.names():
        assert set(written[name].get("properties", {})) == set(ops.parameters(name))


def test_limits_agree() -> None:
    assert SCHEMA["$defs"]["pattern"]["maxLength"] == MAX_TEXT
