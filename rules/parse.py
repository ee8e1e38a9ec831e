"""Bytes to a rule file: YAML, form, rules, in one pass that collects every problem."""

from __future__ import annotations

import re
from pathlib import Path

from weightloom.engine.errors import StorageError
from weightloom.rules.config_fields import read_config
from weightloom.rules.document import Head, Layout, RuleFile, RuleItem
from weightloom.rules.forms import read_item
from weightloom.rules.head import read_head, reference
from weightloom.rules.nodes import List, Node, Table, show
from weightloom.rules.op_table import Ops, default_ops
from weightloom.rules.problems import Problems
from weightloom.rules.reading import fields
from weightloom.rules.yaml_text import MAX_BYTES, read_yaml

LAYOUT_KEYS = ("extends", "config", "rules")
# What a layout may be called.
LAYOUT_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}")


def parse_rules(data: bytes, file: str, ops: Ops = default_ops) -> RuleFile:
    """Read a rule file from its bytes; `file` is how errors call it. Raises RuleFileError with every problem."""
    problems = Problems(file)
    node = read_yaml(data, problems)
    head, layouts = read_head(node, problems)
    found = RuleFile(file, head, _layouts(layouts, head, node, ops, problems))
    problems.check()
    return found


def parse_head(data: bytes, file: str) -> Head:
    """Read what a file is for, without its rules; raises RuleFileError.

    Only the text before `layouts` is read, which is why it comes last.
    """
    problems = Problems(file)
    head, _ = read_head(read_yaml(head_bytes(data), problems), problems)
    problems.check()
    return head


def head_bytes(data: bytes) -> bytes:
    """Give what stands before the layouts."""
    start = data.find(b"\nlayouts:")
    return data if start < 0 else data[: start + 1]


def read_bytes(path: Path) -> bytes:
    """Give a file's bytes, one more than the limit at most; raises StorageError."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"cannot read the rule file: {reason}", expected="a YAML file", file=path) from error


def _layouts(node: Node | None, head: Head, root: Node, ops: Ops, problems: Problems) -> tuple[Layout, ...]:
    if node is None:
        if head.extends is None:
            problems.add(root.at, "the file lacks 'layouts'", expected="layouts, or a family to extend")
        return ()
    if not isinstance(node, Table) or not node.entries:
        seen = "empty" if isinstance(node, Table) else show(node)
        problems.add(node.at, f"layouts is {seen}", expected="a mapping from a layout's name to its rules")
        return ()
    for entry in node.entries:
        if not LAYOUT_NAME.fullmatch(entry.key):
            wanted = "letters, digits, dots, - and _"
            problems.add(entry.at, f"a layout named {entry.key[:80]!r}", expected=wanted, field="layouts")
    return tuple(_layout(entry.key, entry.value, ops, problems) for entry in node.entries)


def _layout(name: str, node: Node, ops: Ops, problems: Problems) -> Layout:
    found = fields(node, f"layout {name!r}", problems, optional=LAYOUT_KEYS)
    if isinstance(node, Table) and not found:
        problems.add(node.at, f"layout {name!r} has neither rules nor extends", expected="one of them")
    extends, config = reference(found.get("extends"), problems), read_config(found.get("config"), problems)
    return Layout(name, _items(found.get("rules"), ops, problems), extends, config)


def _items(node: Node | None, ops: Ops, problems: Problems) -> tuple[RuleItem, ...]:
    if node is None:
        return ()
    if not isinstance(node, List):
        problems.add(node.at, f"rules is {show(node)}", expected="a list of rules", field="rules")
        return ()
    found = (read_item(item, ops, problems) for item in node.items)
    return tuple(item for item in found if item is not None)
