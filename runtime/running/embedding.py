"""Embedding texts: tokens, hidden states, pooling, and what follows it, as the sentence-transformers files say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.running.batches import in_batches, mask_of, padded
from weightloom.runtime.running.dense import DenseSettings, load_dense
from weightloom.runtime.running.embed_settings import EmbedSettings, Normalize, read_settings
from weightloom.runtime.running.pooling import pool, pooling_modes
from weightloom.runtime.running.pooling_file import Pooling
from weightloom.runtime.running.prompts import length_of, prompt_for
from weightloom.runtime.running.refusals import need_task, need_texts
from weightloom.runtime.running.text_settings import row_limit
from weightloom.runtime.running.token_ids import need_known_ids

if TYPE_CHECKING:
    from pathlib import Path

    import mlx.core as mx

    from weightloom.runtime.model import LoadedModel

Layer: TypeAlias = "Callable[[mx.array], mx.array]"


@dataclass(frozen=True)
class Embedder:
    """How a model embeds: its settings, and the layers after the pooling with their weights."""

    settings: EmbedSettings
    layers: tuple[Layer, ...]

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def open_embedder(folder: Path) -> Embedder:
    """Read how a directory's model embeds; raises ConfigError, CheckpointError and PlanError for what cannot be."""
    settings = read_settings(folder)
    layers = (load_dense(step) if isinstance(step, DenseSettings) else unit for step in settings.after)
    return Embedder(settings, tuple(layers))


def embed(
    m: LoadedModel,
    texts: Sequence[str],
    *,
    pooling: str | Sequence[str] | None = None,
    normalize: bool | None = None,
    prompt: str | None = None,
    prompt_name: str | None = None,
    max_length: int | None = None,
) -> mx.array:
    """Embed texts: float32 (N, D), rows in order.

    The model's files say how; `pooling` (one way, or several side by side) and `normalize` override them. Before each
    text goes `prompt`, or the one with the name `prompt_name` among the model's own, else its default one. A text is
    cut after `max_length` tokens, by default those of the model's files, and never more than its position table has.

    Raises UsageError for a model that does not embed, no texts, a pooling that neither says, or a prompt that there is
    not; ConfigError for files that contradict each other.
    """
    import mlx.core as mx

    need_task(m, "embed")
    need_texts(texts)
    settings = m.embedder.settings
    way = _pooling(settings, pooling)
    first = prompt_for(settings.prompts, settings.default_prompt, prompt, prompt_name)
    read = [first + text for text in texts]
    rows = m.need_tokenizer().encode_batch(
        [text.lower() for text in read] if settings.text.lower_case else read, row_limit(m, settings.text, max_length)
    )
    _check_rows(m, rows)
    without = 0 if way.include_prompt else length_of(m.need_tokenizer(), first)
    layers = _layers(m.embedder, normalize)
    return mx.stack(in_batches(rows, lambda batch: _embedded(m, [rows[i] for i in batch], way, without, layers)))


def _pooling(settings: EmbedSettings, asked: str | Sequence[str] | None) -> Pooling:
    if asked is not None:
        return replace(settings.pooling or Pooling(()), modes=pooling_modes(asked))
    if settings.pooling is None:
        raise UsageError(
            "the pooling is None",
            expected="a way to pool, or several",
            hint="give it (pooling=, --pooling); the directory has no sentence-transformers files that say",
            field="pooling",
        )
    return settings.pooling


def _check_rows(m: LoadedModel, rows: Sequence[Sequence[int]]) -> None:
    for number, row in enumerate(rows):
        if not row:
            raise UsageError(
                f"text {number} has no tokens",
                expected="texts of one token at least",
                hint="leave it out",
                field="texts",
            )
        need_known_ids(m, row)


def _layers(embedder: Embedder, normalize: bool | None) -> tuple[Layer, ...]:
    """Give the layers after the pooling, with or without the norm that was asked for."""
    if normalize is None:
        return embedder.layers
    pairs = zip(embedder.settings.after, embedder.layers, strict=True)
    others = tuple(layer for step, layer in pairs if not isinstance(step, Normalize))
    return (*others, unit) if normalize else others


def _embedded(
    m: LoadedModel, rows: list[list[int]], way: Pooling, without: int, layers: tuple[Layer, ...]
) -> list[mx.array]:
    import mlx.core as mx

    hidden = m.model(padded(rows), mask_of(rows)).astype(mx.float32)
    if way.width not in (None, hidden.shape[-1]):
        raise ConfigError(
            f"the pooling is of {way.width} dimensions, and the model has {hidden.shape[-1]}",
            expected="the pooling of this model",
            file=way.file,
            field="embedding_dimension",
        )
    vectors = pool(hidden, mask_of(rows, without) if without else mask_of(rows), way.modes)
    for layer in layers:
        vectors = layer(vectors)
    mx.eval(vectors)
    return list(vectors)


def unit(vectors: mx.array) -> mx.array:
    """Give vectors (N, D) the length 1."""
    import mlx.core as mx

    return vectors / mx.maximum(mx.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
