"""The language of chat templates: Jinja in a sandbox, with what templates expect to be there besides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from weightloom.runtime.tokenizing.sandbox import Sandbox

_EXTENSIONS = ("jinja2.ext.loopcontrols", f"{__name__}.GenerationBlock")
# What templates ask for by `is not none`; a template that finds no such name takes them for given.
_NOT_GIVEN: Mapping[str, Any] = {"tools": None, "documents": None}


class GenerationBlock(Extension):
    """`{% generation %}`: marks, for training, what the model said; here it is its content."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """Read the block up to its end."""
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)


def rendered(text: str, values: Mapping[str, Any]) -> str:
    """Render a template; raises what Jinja raises, and what the template does."""
    return str(_environment().from_string(text).render({"add_generation_prompt": True, **_NOT_GIVEN, **values}))


def _environment() -> Sandbox:
    environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=_EXTENSIONS)
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Unlike Jinja's own filter: no escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
