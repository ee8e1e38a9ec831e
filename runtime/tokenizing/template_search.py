"""A model's chat templates: where they are, which one counts, and which one is meant.

Places, first to last: chat_template.jinja with the folder additional_chat_templates (a file for each further name),
then tokenizer_config.json, then chat_template.json. The latter two have a text, a list of `name` and `template`, or an
object of texts by name. A name that several places have is the first one's; a note says so where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.engine.os_errors import storage_error
from weightloom.engine.show import listed, shown
from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.configs.side_bytes import read_side_bytes
from weightloom.runtime.tokenizing.chat_template import ChatTemplate

DEFAULT = "default"
WITH_TOOLS = "tool_use"
_FIELD = "chat_template"
_FOLDER = "additional_chat_templates"
_Named = tuple[str, str]
PLACES = f"chat_template.jinja, {_FOLDER}, tokenizer_config.json or chat_template.json"


def find_templates(directory: Path, settings: Mapping[str, Any]) -> dict[str, ChatTemplate]:
    """Find a directory's templates by name; `settings` is the content of tokenizer_config.json.

    Raises ConfigError for a file that is no text, and for what is no template.
    """
    found: dict[str, dict[str, str]] = {}
    for source, (name, text) in _all(directory, settings):
        found.setdefault(name, {}).setdefault(source, text)
    return {name: _first(places) for name, places in found.items()}


def chosen(templates: Mapping[str, ChatTemplate], name: str | None, with_tools: bool) -> ChatTemplate:
    """Give the template of a name; without one, that for tools where there are some, else the default.

    Raises UsageError, with the names that there are, where no such template is there.
    """
    if not templates:
        raise UsageError(
            "this model has no chat template",
            expected=f"a template in {PLACES}",
            hint="give the prompt as plain text",
            field=_FIELD,
        )
    wanted = [name] if name is not None else [*([WITH_TOOLS] if with_tools else []), DEFAULT]
    there = [each for each in wanted if each in templates]
    if there:
        return templates[there[0]]
    raise UsageError(
        f"no chat template is named {wanted[-1]!r}",
        expected=f"one of {listed(sorted(templates))}",
        hint="choose one by name",
        field=_FIELD,
    )


def _first(places: Mapping[str, str]) -> ChatTemplate:
    (source, text), *others = places.items()
    differing = [name for name, other in others if other.strip() != text.strip()]
    note = f"{source} is used; {', '.join(differing)} has another template" if differing else None
    return ChatTemplate(text, source, note)


def _all(directory: Path, settings: Mapping[str, Any]) -> Iterator[tuple[str, _Named]]:
    """Yield each template with its place, in the order of preference."""
    for name, file in ((DEFAULT, directory / "chat_template.jinja"), *_further(directory / _FOLDER)):
        raw = read_side_bytes(file)
        if raw is not None:
            yield file.relative_to(directory).as_posix(), (name, _text(raw, file))
    for file, content in (
        (directory / "tokenizer_config.json", settings),
        (directory / "chat_template.json", read_json_object(directory / "chat_template.json")),
    ):
        for named in _stated(file, content.get(_FIELD)):
            yield file.name, named


def _further(folder: Path) -> list[tuple[str, Path]]:
    try:
        return [(file.stem, file) for file in sorted(folder.glob("*.jinja"))] if folder.is_dir() else []
    except OSError as error:
        raise storage_error("list", folder, error) from error


def _text(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot be read: {error}", expected="a text file in UTF-8", file=path) from error


def _stated(file: Path, value: Any) -> list[_Named]:
    """Give the templates that a field states, by name."""
    if value is None:
        return []
    if isinstance(value, str):
        return [(DEFAULT, value)]
    if isinstance(value, Mapping):
        return [_named(file, f"{_FIELD}.{name}", name, text) for name, text in value.items()]
    if isinstance(value, list):
        return [_entry(file, f"{_FIELD}[{number}]", each) for number, each in enumerate(value)]
    raise _bad(file, _FIELD, value)


def _entry(file: Path, field: str, value: Any) -> _Named:
    if not isinstance(value, Mapping):
        raise _bad(file, field, value)
    return _named(file, field, value.get("name"), value.get("template"))


def _named(file: Path, field: str, name: Any, text: Any) -> _Named:
    if not isinstance(name, str) or not name or not isinstance(text, str):
        raise _bad(file, field, {"name": name, "template": text})
    return name, text


def _bad(file: Path, field: str, value: Any) -> ConfigError:
    return ConfigError(
        f"{field} is {shown(value)}",
        expected="a text, or a list of templates, each with name and template",
        hint="correct or remove the field",
        file=file,
        field=field,
    )
