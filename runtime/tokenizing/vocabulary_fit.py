"""Whether a tokenizer's ids are rows of the model's embedding: one that has more may be another model's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tokenizers

from weightloom.engine.show import listed
from weightloom.runtime.configs.sections import text_parts


def vocabulary_size(config: Mapping[str, Any]) -> int | None:
    """Give how many rows the embedding has by the config, or by its text model's section; None where neither says."""
    sizes = (part.get("vocab_size") for part in text_parts(config))
    return next((size for size in sizes if type(size) is int), None)


def beyond_vocabulary(backend: tokenizers.Tokenizer, config: Mapping[str, Any]) -> Iterator[str]:
    """Say, in a line at most, which tokens the embedding has no row for.

    Looked at are the ids up to the number of tokens, and those of added tokens: a list of all takes half a second.
    """
    rows, count = vocabulary_size(config), backend.get_vocab_size()
    beyond = {} if rows is None else _from(backend, rows, count)
    if beyond:
        named = listed([f"{text} ({number})" for number, text in sorted(beyond.items())])
        yield f"the tokenizer has {count} tokens and the embedding {rows} rows: texts are refused that have {named}"


def _from(backend: tokenizers.Tokenizer, rows: int, count: int) -> dict[int, str]:
    added = {number: token.content for number, token in backend.get_added_tokens_decoder().items() if number >= rows}
    found = ((number, backend.id_to_token(number)) for number in range(max(rows, 0), count))
    return {number: text for number, text in found if text is not None} | added
