"""Chat templates, rendered in a sandbox: a template comes with a checkpoint and is not trusted.

Where a directory has several: chat_template.jinja first, then tokenizer_config.json, then chat_template.json. Two
that differ are worth a warning (`ChatTemplate.note`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.tokenizing.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A template's text, where it came from, and a note if another file has a different one."""

    text: str
    source: str
    note: str | None = None

    def render(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> str:
        """Render messages (mappings with `role` and `content`); raises UsageError with the template's own words."""
        values = {"add_generation_prompt": True, **options, "messages": messages}
        try:
            return str(_environment().from_string(self.text).render(values))
        except Exception as error:  # a stranger's template may raise anything
            raise UsageError(
                f"the chat template of {self.source} does not take these messages: {error}",
                expected="messages as the template wants them: role and content, roles in turn",
                file=self.source,
            ) from error


def find_template(directory: Path, settings: Mapping[str, Any]) -> ChatTemplate | None:
    """Find a directory's template; `settings` is the content of tokenizer_config.json."""
    found: list[tuple[str, str]] = []
    plain = directory / "chat_template.jinja"
    if plain.is_file():
        found.append((plain.name, _text(plain)))
    for name, content in (
        ("tokenizer_config.json", settings),
        ("chat_template.json", read_json_object(directory / "chat_template.json")),
    ):
        text = _default(content.get("chat_template"))
        if text is not None:
            found.append((name, text))
    if not found:
        return None
    differing = [name for name, text in found[1:] if text.strip() != found[0][1].strip()]
    note = f"{found[0][0]} is used; {', '.join(differing)} has another template" if differing else None
    return ChatTemplate(found[0][1], found[0][0], note)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", expected="a text file in UTF-8", file=path) from error


def _default(value: Any) -> str | None:
    """A template is a text, or a list of named ones of which `default` is meant."""
    if isinstance(value, list):
        named = {t.get("name"): t.get("template") for t in value if isinstance(t, Mapping)}
        value = named.get("default") or next(iter(named.values()), None)
    return value if isinstance(value, str) else None


def _environment() -> Sandbox:
    environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _to_json(value: Any, indent: int | None = None) -> str:
    """Unlike Jinja's own filter: no escapes for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
