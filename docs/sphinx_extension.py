"""What these pages need of Sphinx: generated parts, names of files over blocks, links from types to public names."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

from docs.generating import filled

_NAMED_BLOCK = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)


def read(app: Sphinx, name: str, content: list[str]) -> None:
    """Fill in a page, and show over a block the name of the file that it is."""
    content[0] = _NAMED_BLOCK.sub(r"```{code-block} \1\n:caption: \2\n", filled(content[0]))


def resolved(app: Sphinx, env: BuildEnvironment, node: pending_xref, inside: nodes.Node) -> nodes.Node | None:
    """Give a link to what is documented under a public name; a signature names the file that a class is in."""
    if node.get("refdomain") != "py":
        return None
    last = str(node["reftarget"]).rpartition(".")[2]
    objects = env.domains.python_domain.objects
    found = sorted(name for name in objects if name.rpartition(".")[2] == last)
    if not found:
        return None
    entry = objects[found[0]]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, inside)


def plain(app: Sphinx, what: str, name: str, found: object, options: object, lines: list[str]) -> None:
    """Keep marks outside backticks as they are: docstrings are plain English with code in backticks."""
    parts = enumerate("\n".join(lines).split("`"))
    lines[:] = "`".join(part if place % 2 else _escaped(part) for place, part in parts).split("\n")


def _escaped(text: str) -> str:
    return re.sub(r"(?<=.)[*|]|[*|](?=\S)|_(?=\W|$)", r"\\\g<0>", text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Hook in."""
    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", plain)
    app.connect("missing-reference", resolved)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
