"""Tokenizers: text to ids and back, from a model's own files (or a GGUF's metadata)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.chat_template import ChatTemplate, find_template
from weightloom.runtime.json_file import read_json_object
from weightloom.runtime.streaming import stream_text


@dataclass(frozen=True)
class Tokenizer:
    """A `tokenizers` tokenizer without padding or truncation of its own, stop ids, and a chat template."""

    backend: tokenizers.Tokenizer
    stop_ids: frozenset[int] = frozenset()
    template: ChatTemplate | None = None
    special: Mapping[str, str] = field(default_factory=dict)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Give the ids of a text; raises UsageError for one with half characters (lone surrogates)."""
        try:
            return list(self.backend.encode(text, add_special_tokens=add_special_tokens).ids)
        except (TypeError, UnicodeEncodeError) as error:
            raise UsageError(
                f"the text {text[:40]!a} has no tokens: {error}", expected="Unicode text", field="text"
            ) from error

    def encode_batch(self, texts: Sequence[str], max_length: int | None = None) -> list[list[int]]:
        """Give the ids of several texts, each cut to `max_length` with its closing special token kept."""
        rows = [self.encode(text) for text in texts]
        return [_cut(row, max_length, self.encode("")) for row in rows]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Give the text of ids."""
        return str(self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def stream(self, ids: Iterable[int]) -> Iterator[str]:
        """Give text as ids come, never a part of a character; what stays incomplete comes at the end."""
        return stream_text(ids, self.decode)

    def apply_chat_template(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """Render messages to a prompt; raises UsageError for a model without a template."""
        if self.template is None:
            raise UsageError(
                "this model has no chat template",
                expected="a template in tokenizer_config.json, chat_template.jinja or chat_template.json",
                hint="give the prompt as plain text",
            )
        return self.template.render(messages, {**self.special, **options})


def load_tokenizer(directory: Path) -> Tokenizer | None:
    """Read a directory's tokenizer.json and what belongs to it; None where there is none.

    Reads no model config but its end-of-text ids. Raises ConfigError for a file that cannot be read.
    """
    path = directory / "tokenizer.json"
    if not path.is_file():
        return None
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ConfigError(
            f"the tokenizer cannot be read: {error}",
            expected="a tokenizer.json that the tokenizers library reads",
            hint="download the file again",
            file=path,
        ) from error
    backend.no_padding()
    backend.no_truncation()
    settings = read_json_object(directory / "tokenizer_config.json")
    special = {name: text for name in _NAMED if (text := _content(settings.get(name))) is not None}
    return Tokenizer(backend, _stop_ids(directory, backend, special), find_template(directory, settings), special)


_NAMED = ("bos_token", "eos_token", "pad_token", "unk_token")


def _stop_ids(directory: Path, backend: tokenizers.Tokenizer, special: Mapping[str, str]) -> frozenset[int]:
    """The end-of-text ids of generation_config.json, else config.json, and the tokenizer's own."""
    found: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        ids = read_json_object(directory / name).get("eos_token_id")
        found |= {i for i in (ids if isinstance(ids, list) else [ids]) if isinstance(i, int)}
        if found:
            break
    own = backend.token_to_id(special["eos_token"]) if "eos_token" in special else None
    return frozenset(found | ({own} if own is not None else set()))


def _content(token: Any) -> str | None:
    """A special token is a text, or an object with its text in `content`."""
    value = token.get("content") if isinstance(token, Mapping) else token
    return value if isinstance(value, str) else None


def _cut(row: list[int], max_length: int | None, empty: list[int]) -> list[int]:
    if max_length is None or len(row) <= max_length:
        return row
    closing = empty[-1:] if empty and row[-1] == empty[-1] else []
    return row[: max_length - len(closing)] + closing
