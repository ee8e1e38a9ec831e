"""Reranking: how well documents answer a query, by a classifier over pairs, or by a generator that was asked to judge.

The score of a classifier with one label is what its files' activation makes of the logit, a sigmoid by default, as
sentence-transformers' cross-encoders do; of several labels, the share of the one that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.plugins.configs.labels import label_names
from weightloom.runtime.running.batches import in_batches, mask_of, padded
from weightloom.runtime.running.judging import judged_rows, read_judge
from weightloom.runtime.running.pairs import encode_pairs, takes_types
from weightloom.runtime.running.refusals import need_task, need_texts
from weightloom.runtime.running.text_settings import TextSettings, read_text_settings, row_limit
from weightloom.runtime.running.token_ids import need_known_ids

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.runtime.model import LoadedModel

ACTIVATIONS = ("sigmoid", "identity")


def rerank(
    m: LoadedModel,
    query: str,
    documents: Sequence[str],
    *,
    label: str | None = None,
    activation: str | None = None,
    max_length: int | None = None,
) -> list[float]:
    """Score each document for a query: higher is better, in the documents' order.

    `label` names the label whose share is the score, where a classifier has several; `activation` ("sigmoid" or
    "identity") what becomes of a lone logit, instead of what the files say. A pair is cut to `max_length` tokens, by
    default those of the model's files, from the longer of both texts.

    Raises UsageError for a model that does not score pairs, no documents, a label that there is not, ConfigError for
    files that say what cannot be.
    """
    need_task(m, "rerank")
    need_texts([query], "queries")
    need_texts(documents, "documents")
    if activation not in (None, *ACTIVATIONS):
        raise UsageError(f"the activation is {activation!r}", expected=" or ".join(ACTIVATIONS), field="activation")
    texts = read_text_settings(m.folder, m.decision.evidence.steps)
    given = [query, *documents]
    first, *others = [text.lower() for text in given] if texts.lower_case else given
    if m.architecture.task != "rerank":
        logits = _judged(m, first, others, row_limit(m, texts, max_length))
        return [float(_activated(m, activation)(value)) for value in logits]
    pick = _picked(m, label, activation)
    return [float(pick(row)) for row in _classified(m, first, others, texts, max_length)]


def _classified(
    m: LoadedModel, query: str, documents: Sequence[str], texts: TextSettings, max_length: int | None
) -> list[mx.array]:
    """Give the logits (labels,) of each pair."""
    import mlx.core as mx

    pairs = encode_pairs(m.need_tokenizer(), query, documents, row_limit(m, texts, max_length))
    _check_rows(m, [pair.ids for pair in pairs])
    typed = takes_types(m.folder)

    def run(batch: list[int]) -> list[mx.array]:
        rows = [pairs[number].ids for number in batch]
        types = padded([pairs[number].types for number in batch])
        logits = m.model(padded(rows), mask_of(rows), types if typed else None).astype(mx.float32)
        mx.eval(logits)
        return list(logits)

    return in_batches([pair.ids for pair in pairs], run)


def _judged(m: LoadedModel, query: str, documents: Sequence[str], limit: int | None) -> list[mx.array]:
    """Give, for each document, how much more likely yes is than no, () each."""
    judge = read_judge(m.folder, m.decision.evidence.steps)
    need_known_ids(m, judge.verdicts)
    rows = judged_rows(m.need_tokenizer(), query, documents, limit)
    _check_rows(m, rows)
    return in_batches(rows, lambda batch: judge.scores(m, [rows[number] for number in batch]))


def _check_rows(m: LoadedModel, rows: Sequence[Sequence[int]]) -> None:
    for number, row in enumerate(rows):
        if not row:
            raise UsageError(
                f"query and document {number} have no tokens", expected="pairs of one token at least", field="documents"
            )
        need_known_ids(m, row)


def _picked(m: LoadedModel, label: str | None, activation: str | None) -> Callable[[mx.array], mx.array]:
    """Give what makes a score of a pair's logits (labels,)."""
    import mlx.core as mx

    names = label_names(m.config)
    if label is None and len(names) == 1:
        act = _activated(m, activation)
        return lambda logits: act(logits[0])
    if label not in names:
        raise UsageError(
            f"{m.architecture.name} has {len(names)} labels" + ("" if label is None else f", and none is {label!r}"),
            expected=f"the label that scores: {', '.join(names)}",
            hint="name it: label=, --label",
            file=m.path,
            field="label",
        )
    if names.count(label) > 1:
        raise UsageError(
            f"{m.architecture.name} has several labels {label!r}",
            expected="labels that differ",
            hint="name them apart in id2label of config.json",
            file=m.path,
            field="label",
        )
    number = names.index(label)
    return lambda logits: mx.softmax(logits)[number]


def _activated(m: LoadedModel, asked: str | None) -> Callable[[mx.array], mx.array]:
    import mlx.core as mx

    name = asked or _activation_said(m)
    return mx.sigmoid if name == "sigmoid" else mx.array


def _activation_said(m: LoadedModel) -> str:
    section: Any = m.config.get("sentence_transformers")
    new = section.get("activation_fn") if isinstance(section, dict) else None
    field = "sbert_ce_default_activation_function" if new is None else "sentence_transformers.activation_fn"
    said = m.config.get(field) if new is None else new
    if said is None:
        return ACTIVATIONS[0]
    name = said.rpartition(".")[2].lower() if isinstance(said, str) else said
    if name not in ACTIVATIONS:
        raise ConfigError(
            f"{field} is {said!r}",
            expected=" or ".join(ACTIVATIONS),
            hint="choose it yourself: activation=, --activation",
            file=m.path,
            field=field,
        )
    return str(name)
