"""The head of a rule file: for whom it is, and what it builds on."""

from __future__ import annotations

from weightloom.rules.document import Head, Identifiers, Reference, SubModel
from weightloom.rules.nodes import List, Node, Scalar, Table, show
from weightloom.rules.problems import Problems
from weightloom.rules.reading import fields, name, names, text

SCHEMA = 1
REQUIRED = ("schema", "family")
OPTIONAL = ("applies_to", "aliases", "base_model_prefix", "tree", "parts", "extends")
IDENTIFIER_KEYS = ("model_types", "class_names")
TREE_KEYS = ("path", "class", "config")


def read_head(node: Node, problems: Problems) -> tuple[Head, Node | None]:
    """Read all but the layouts; gives the head and the layouts' node. What is wrong is added to `problems`."""
    found = fields(node, "the file", problems, required=REQUIRED, optional=(*OPTIONAL, "layouts"))
    _check_order(node, problems)
    if "schema" in found:
        _check_schema(found["schema"], problems)
    head = Head(
        name(found.get("family"), "family", problems) or "",
        _identifiers(found.get("applies_to"), "applies_to", problems),
        _identifiers(found.get("aliases"), "aliases", problems),
        text(found.get("base_model_prefix"), "base_model_prefix", problems),
        _tree(found.get("tree"), problems),
        reference(found.get("extends"), problems),
        _parts(found.get("parts"), problems),
    )
    _check_identifiers(head, node, problems)
    _check_parts(head, node, problems)
    return head, found.get("layouts")


def reference(node: Node | None, problems: Problems) -> Reference | None:
    """Read `extends`: `family` or `family/layout`."""
    written = name(node, "extends", problems)
    if written is None or node is None:
        return None
    family, slash, layout = written.partition("/")
    if not family or (slash and not layout) or "/" in layout:
        problems.add(node.at, f"extends is {written!r}", expected="family, or family/layout")
        return None
    return Reference(family, layout or None, node.at)


def _check_schema(node: Node, problems: Problems) -> None:
    if not (isinstance(node, Scalar) and node.value == SCHEMA and not isinstance(node.value, bool | float)):
        problems.add(
            node.at,
            f"schema is {show(node)}",
            expected=f"{SCHEMA}, the version of the form that this weightloom reads",
            hint="a newer version may need a newer weightloom",
            field="schema",
        )


def _check_order(node: Node, problems: Problems) -> None:
    """`layouts` comes last, so that looking for a family reads no rules."""
    if not isinstance(node, Table):
        return
    keys = [entry.key for entry in node.entries]
    if "layouts" in keys[:-1]:
        late = node.entries[keys.index("layouts") + 1]
        problems.add(late.at, f"{late.key!r} stands after `layouts`", expected="`layouts` last", field=late.key)


def _check_identifiers(head: Head, node: Node, problems: Problems) -> None:
    known = head.identifiers
    twice = sorted({each for each in known if known.count(each) > 1})
    if twice:
        problems.add(
            node.at, f"{twice[0]!r} stands twice in applies_to and aliases", expected="each once", field="aliases"
        )


def _check_parts(head: Head, node: Node, problems: Problems) -> None:
    for model_type, class_name in head.parts.items():
        if class_name not in head.identifiers:
            problems.add(
                node.at,
                f"parts.{model_type} is {class_name!r}",
                expected="a class name among this file's applies_to and aliases",
                field="parts",
            )


def _identifiers(node: Node | None, what: str, problems: Problems) -> Identifiers:
    if node is None:
        return Identifiers()
    found = fields(node, what, problems, optional=IDENTIFIER_KEYS)
    lists = (names(found.get(key), f"{what}.{key}", problems) for key in IDENTIFIER_KEYS)
    return Identifiers(*lists)


def _tree(node: Node | None, problems: Problems) -> tuple[SubModel, ...] | None:
    if node is None:
        return None
    if not isinstance(node, List):
        problems.add(node.at, f"tree is {show(node)}", expected="a list of sub-models")
        return ()
    found = tuple(_sub_model(item, problems) for item in node.items)
    paths = [each.path for each in found]
    for item, each in zip(node.items, found, strict=True):
        if each.path and paths.count(each.path) > 1:
            problems.add(item.at, f"two sub-models at {each.path!r}", expected="one at each path", field="tree")
    return found


def _parts(node: Node | None, problems: Problems) -> dict[str, str]:
    """Read the class that each model type makes as a sub-model."""
    if node is None:
        return {}
    if not isinstance(node, Table):
        problems.add(node.at, f"parts is {show(node)}", expected="a mapping from model types to class names")
        return {}
    found = {entry.key: name(entry.value, f"parts.{entry.key}", problems) for entry in node.entries}
    return {model_type: class_name for model_type, class_name in found.items() if class_name is not None}


def _sub_model(node: Node, problems: Problems) -> SubModel:
    found = fields(node, "a sub-model", problems, required=("path",), optional=TREE_KEYS[1:])
    each = SubModel(
        name(found.get("path"), "path", problems) or "",
        name(found.get("class"), "class", problems),
        name(found.get("config"), "config", problems),
    )
    if isinstance(node, Table) and not {"class", "config"} & set(found):
        problems.add(node.at, "a sub-model without class and config", expected="one of them", field="tree")
    return each
