"""Token ids against the model's vocabulary: MLX looks up any row that it is asked for, in the table or beyond it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from weightloom.engine.errors import UsageError
from weightloom.runtime.tokenizing.vocabulary_fit import vocabulary_size

if TYPE_CHECKING:
    from weightloom.runtime.model import LoadedModel


def need_known_ids(m: LoadedModel, ids: Iterable[int]) -> None:
    """Raise UsageError for an id that the config's vocabulary does not have."""
    size = vocabulary_size(m.config)
    if size is None:
        return
    wrong = next((number for number in ids if not 0 <= number < size), None)
    if wrong is not None:
        raise UsageError(
            f"token id {wrong}",
            expected=f"an id from 0 to {size - 1}, the model's vocabulary",
            hint="the tokenizer may be another model's",
            file=m.path,
            field="vocab_size",
        )
