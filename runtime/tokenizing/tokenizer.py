"""Tokenizers: text to ids and back, from a model's own files (or a GGUF's metadata)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers

from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.tokenizing.backend_calls import decoded, encoded
from weightloom.runtime.tokenizing.chat_template import ChatTemplate
from weightloom.runtime.tokenizing.special_tokens import SETTINGS, read_special_tokens
from weightloom.runtime.tokenizing.stop_ids import find_stop_ids
from weightloom.runtime.tokenizing.streaming import stream_text
from weightloom.runtime.tokenizing.template_search import DEFAULT, chosen, find_templates
from weightloom.runtime.tokenizing.vocabulary import read_vocabulary
from weightloom.runtime.tokenizing.vocabulary_search import find_vocabulary


@dataclass(frozen=True)
class Tokenizer:
    """A `tokenizers` tokenizer without padding or truncation of its own, stop ids, and chat templates by name."""

    backend: tokenizers.Tokenizer
    stop_ids: frozenset[int] = frozenset()
    templates: Mapping[str, ChatTemplate] = field(default_factory=dict)
    special: Mapping[str, str] = field(default_factory=dict)

    @property
    def template(self) -> ChatTemplate | None:
        """Give the chat template that is meant where none is named."""
        return self.templates.get(DEFAULT)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say where files have different templates, and which one is used."""
        return tuple(each.note for each in self.templates.values() if each.note is not None)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Give the ids of a text; raises as `encoded` does."""
        return encoded(self.backend, text, add_special_tokens)

    def encode_batch(self, texts: Sequence[str], max_length: int | None = None) -> list[list[int]]:
        """Give the ids of several texts, each cut to `max_length` with its closing special token kept."""
        rows = [self.encode(text) for text in texts]
        return [_cut(row, max_length, self.encode("")) for row in rows]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Give the text of ids; raises as `decoded` does."""
        return decoded(self.backend, ids, skip_special_tokens)

    def stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Give text as ids come, never a part of a character; what stays incomplete comes at the end."""
        return stream_text(ids, self.decode)

    def apply_chat_template(
        self, messages: Sequence[Mapping[str, Any]], *, chat_template: str | None = None, **options: Any
    ) -> str:
        """Render messages to a prompt, by the template of a name or the default one (`tool_use`, for `tools`).

        `options` are what the template asks for, such as `tools`. Raises UsageError where no such template is there.
        """
        template = chosen(self.templates, chat_template, with_tools=options.get("tools") is not None)
        return template.render(messages, {**self.special, **options})


def load_tokenizer(directory: Path) -> Tokenizer | None:
    """Read a directory's vocabulary, of any kind, and what belongs to it; None where there is none.

    Of a model's config, it reads the end-of-text ids and, for kinds that need it, the tokenizer's class. Raises
    ConfigError for a file that cannot be read, or that does not fit the others.
    """
    found = find_vocabulary(directory)
    if found is None:
        return None
    stated = read_special_tokens(directory)
    backend, named = read_vocabulary(*found, stated)
    backend.no_padding()
    backend.no_truncation()
    templates = find_templates(directory, read_json_object(directory / SETTINGS))
    return Tokenizer(backend, find_stop_ids(directory, backend, named), templates, named)


def _cut(row: list[int], max_length: int | None, empty: list[int]) -> list[int]:
    if max_length is None or len(row) <= max_length:
        return row
    closing = empty[-1:] if empty and row[-1] == empty[-1] else []
    return row[: max_length - len(closing)] + closing
