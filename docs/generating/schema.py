"""Rule files and recipes, field by field, as their JSON Schemas have them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from docs.generating.tables import cell, table

Schema = Mapping[str, Any]


def rule_files() -> str:
    """Give the fields of rule files."""
    return _text("schema.json")


def recipes() -> str:
    """Give the fields of recipes."""
    return _text("recipe_schema.json")


def read(name: str) -> Schema:
    """Read a schema that ships."""
    found: Schema = json.loads((files("weightloom.rules") / name).read_text(encoding="utf-8"))
    return found


def objects(schema: Schema, defs: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield each mapping that has fields of its own, with where it is; one that several have is given once."""
    seen = {"op"}  # ops have a page of their own

    def walk(node: Schema, at: str) -> Iterator[tuple[str, Schema]]:
        name = str(node.get("$ref", "")).rpartition("/")[2]
        if name in seen:
            return
        seen.update({name} - {""})
        target = {**defs[name], **node} if name else node
        if "properties" in target:
            yield at, target
        for field, child in target.get("properties", {}).items():
            yield from walk(child, f"{at}.{field}" if at else field)
        if isinstance(target.get("items"), dict):
            yield from walk(target["items"], f"{at}[]")
        if isinstance(target.get("additionalProperties"), dict):
            yield from walk(target["additionalProperties"], f"{at}.NAME")
        for option in (*target.get("anyOf", ()), *target.get("oneOf", ())):
            yield from walk(option, at)

    yield from walk(schema, path)


def _text(name: str) -> str:
    schema = read(name)
    return "\n".join(_section(at, node, schema["$defs"]) for at, node in objects(schema, schema["$defs"]))


def _section(at: str, node: Schema, defs: Schema) -> str:
    rows = []
    for field, child in node["properties"].items():
        said = {**defs.get(str(child.get("$ref", "")).rpartition("/")[2], {}), **child}
        needed = " (has to be there)" if field in node.get("required", ()) else ""
        rows.append((f"`{field}`", takes(child, defs), cell(said.get("description", "")) + needed))
    title = f"`{at}`" if at else "The file"
    return f"## {title}\n\n{cell(node.get('description', ''))}\n\n{table(('field', 'takes', 'says'), rows)}\n"


def takes(node: Schema, defs: Schema) -> str:
    """Say in a few words what a field takes."""
    node = {**defs.get(str(node.get("$ref", "")).rpartition("/")[2], {}), **node}
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{json.dumps(value)}`" for value in node["enum"])
    if "anyOf" in node and "type" not in node:
        return " or ".join(dict.fromkeys(takes(option, defs) for option in node["anyOf"]))
    kind = node.get("type", "any value")
    if kind == "array":
        return f"a list, each {takes(node['items'], defs)}" if isinstance(node.get("items"), dict) else "a list"
    words = {
        "object": "a mapping",
        "string": "text",
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
    }
    return " or ".join(words.get(each, str(each)) for each in ([kind] if isinstance(kind, str) else kind))
