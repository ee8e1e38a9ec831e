"""The parts of the pages that are made of the program: a page asks for one by `<!-- generated: NAME -->`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from docs.generating import api, commands, comparison, errors, hooks, ops, schema

PARTS: Mapping[str, Callable[[], str]] = {
    **api.PARTS,
    "commands": commands.text,
    "comparison": comparison.text,
    "errors": errors.text,
    "groups": hooks.groups,
    "hooks": hooks.text,
    "ops": ops.text,
    "rule files": schema.rule_files,
    "recipes": schema.recipes,
}
ASKED = re.compile(r"^<!-- generated: ([\w. ]+) -->$", re.MULTILINE)


def filled(page: str) -> str:
    """Put what is generated in its place; raises KeyError for what there is not."""
    return ASKED.sub(lambda found: PARTS[found[1]](), page)
