"""What a forward pass owes: the same answers whole, in parts, and in a batch."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from weightloom.runtime.conformance.answering import answers, answers_in_parts
from weightloom.runtime.conformance.comparing import EXACT, assert_close
from weightloom.runtime.conformance.making import write_checkpoint
from weightloom.runtime.conformance.subject import Subject
from weightloom.runtime.loading.loading import load


def the_reference_agrees(subject: Subject) -> float:
    """Logits, hidden states or scores are those of the independent implementation."""
    return assert_close(answers(subject.loaded.model, subject.tokens()), subject.answers, subject.sample.tolerance)


def the_cache_changes_nothing(subject: Subject) -> float:
    """A prompt in chunks and then token by token has the logits of the whole, and the cache knows how long it is."""
    model: Any = subject.loaded.model
    got = answers_in_parts(model, subject.tokens(), model.make_cache())
    return assert_close(got, subject.answers, subject.sample.tolerance)


def rows_do_not_see_each_other(subject: Subject) -> None:
    """A row of a batch answers as it does alone."""
    model, tokens = subject.loaded.model, subject.tokens()
    assert_close(answers(model, tokens)[1:], answers(model, tokens[1:]), EXACT)


def later_tokens_change_nothing(subject: Subject) -> None:
    """A generating model's logits depend on what came before, and on nothing that comes after."""
    model, tokens = subject.loaded.model, subject.tokens()
    half = subject.sample.length // 2
    assert_close(answers(model, tokens)[:, :half], answers(model, tokens[:, :half]), EXACT)


def padding_changes_nothing(subject: Subject) -> float:
    """Hidden states of the tokens that count, or the scores of rows, are the same with padding behind them."""
    tokens, half = subject.tokens(), subject.sample.length // 2
    mask = mx.broadcast_to(mx.arange(subject.sample.length) < half, tokens.shape).astype(mx.int32)
    found = answers(subject.loaded.model, tokens, mask)
    counted = found if subject.architecture.task == "rerank" else found[:, :half]
    wanted = subject.answers_for(subject.folder, subject.sample.tokens()[:, :half])
    return assert_close(counted, wanted, subject.sample.tolerance)


def padding_in_front_changes_nothing(subject: Subject) -> None:
    """In a batch whose caches say how a row is filled up in front, its tokens have the logits that they have alone."""
    model: Any = subject.loaded.model
    tokens, length = subject.tokens(), subject.sample.length
    filled = length // 4
    cut = tokens[1:, : length - filled]
    batch = mx.concatenate([tokens[:1], mx.concatenate([mx.zeros((1, filled), mx.int32), cut], axis=1)])
    cache = model.make_cache()
    for each in cache:
        each.padding = mx.array([0, filled])
    got = answers_in_parts(model, batch, cache)
    assert_close(got[:1], answers(model, tokens[:1]), EXACT)
    assert_close(got[1:, filled:], answers(model, cut), EXACT)


def the_dtype_is_kept(subject: Subject) -> None:
    """Parameters of 16 bits give answers of 16 bits; nothing is computed, for not every device can."""
    for dtype, kind in (("BF16", mx.bfloat16), ("F16", mx.float16)):
        folder = subject.new_folder()
        write_checkpoint(subject.sample, subject.architecture, folder, dtype)
        model: Any = load(folder).model
        cached = (model.make_cache(),) if subject.architecture.task == "generate" else ()
        for got in (model(subject.tokens()), model(subject.tokens(), *cached)):
            assert got.dtype == kind, f"parameters are {dtype}, answers {got.dtype}"
