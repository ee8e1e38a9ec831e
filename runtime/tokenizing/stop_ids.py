"""The ids that end a text: all that the files of a model state, and the tokenizer's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers

from weightloom.engine.errors import ConfigError
from weightloom.engine.show import shown
from weightloom.runtime.configs.config import parse
from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.configs.sections import text_parts

_FIELD = "eos_token_id"


def find_stop_ids(directory: Path, backend: tokenizers.Tokenizer, named: Mapping[str, str]) -> frozenset[int]:
    """Give the ids of generation_config.json, of config.json (its text model's section too), and of the `eos_token`.

    Raises ConfigError for ids that are no whole numbers, with the file, and CheckpointError for a config that is none.
    """
    generation, config = directory / "generation_config.json", directory / "config.json"
    stated = [
        *_of_file(generation, read_json_object(generation)),
        *_of_file(config, parse(config.read_bytes(), config) if config.is_file() else {}),
    ]
    own = backend.token_to_id(named["eos_token"]) if "eos_token" in named else None
    return frozenset([*stated, *([] if own is None else [own])])


def _of_file(file: Path, content: Mapping[str, Any]) -> Iterator[int]:
    for part in text_parts(content):
        value = part.get(_FIELD)
        yield from _numbers(file, value) if value is not None else ()


def _numbers(file: Path, value: Any) -> list[int]:
    numbers = value if isinstance(value, list) else [value]
    if not all(type(number) is int for number in numbers):
        raise ConfigError(
            f"{_FIELD} is {shown(value)}",
            expected="an id, a list of ids, or null",
            hint="correct or remove the field",
            file=file,
            field=_FIELD,
        )
    return numbers
