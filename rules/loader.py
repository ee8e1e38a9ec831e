"""The everyday door: rules by model type, class name, family or path."""

from __future__ import annotations

import os
from pathlib import Path

from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.rules.extending import layout_rules
from weightloom.rules.lookup import DEFAULT_LAYOUT, Registry, registry
from weightloom.rules.op_table import Ops
from weightloom.rules.parse import parse_rules, read_bytes

# How a rule file is named.
RULE_FILES = (".yaml", ".yml")


def load_rules(
    name: str | os.PathLike[str], layout: str = DEFAULT_LAYOUT, *, lookup: Registry = registry, ops: Ops | None = None
) -> RuleSet:
    """Give the rules of a layout: by model type, alias, class name, family, or the path of a YAML file.

    The RuleSet has the file's `base_model_prefix`. A text with a `/` in it, or that ends in .yaml or .yml, is a
    path. `lookup` is asked for names and for what a file extends. Raises UsageError for an unknown name or
    layout, RuleError with every problem of a file, StorageError for a file that cannot be read.
    """
    if not is_path(name):
        return lookup.rules(str(name), layout)
    path = Path(name)
    file = parse_rules(read_bytes(path), str(path), ops or lookup.ops)
    return layout_rules(file, layout, lookup.family)


def is_path(name: str | os.PathLike[str]) -> bool:
    """Say whether a name of rules is the path of a file."""
    return not isinstance(name, str) or name.endswith(RULE_FILES) or "/" in name or os.sep in name
