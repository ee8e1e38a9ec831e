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
    """Say, in a line at most, which tokens the embedding has no row for."""
    rows = vocabulary_size(config)
    beyond = [] if rows is None else sorted((n, text) for text, n in backend.get_vocab().items() if n >= rows)
    if beyond:
        yield (
            f"the tokenizer has {backend.get_vocab_size()} tokens and the embedding {rows} rows: texts are refused "
            f"that have {listed([f'{text} ({number})' for number, text in beyond])}"
        )
