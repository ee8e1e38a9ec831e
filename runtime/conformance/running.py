"""What a forward pass owes: the same answers whole, in parts, in a batch, and packed."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from weightloom.runtime.conformance.comparing import as_numpy, assert_close
from weightloom.runtime.conformance.making import write_checkpoint
from weightloom.runtime.conformance.subject import Subject
from weightloom.runtime.loading.loading import load

CHUNK = 7
EXACT = 1e-4


def the_reference_agrees(subject: Subject) -> None:
    """Logits, hidden states or scores are those of the independent implementation."""
    sample = subject.sample
    assert sample.reference is not None
    got = as_numpy(subject.load().model(subject.tokens()))
    assert_close(got, sample.reference(subject.folder, sample.tokens()), sample.tolerance)


def the_cache_changes_nothing(subject: Subject) -> None:
    """A prompt in chunks and then token by token has the logits of the whole, and the cache knows how long it is."""
    model: Any = subject.load().model
    tokens = subject.tokens()
    whole, cache = model(tokens), model.make_cache()
    assert_close(as_numpy(_in_parts(model, tokens, cache)), as_numpy(whole), EXACT)


def rows_do_not_see_each_other(subject: Subject) -> None:
    """A row of a batch answers as it does alone."""
    model, tokens = subject.load().model, subject.tokens()
    assert_close(as_numpy(model(tokens)[1:]), as_numpy(model(tokens[1:])), EXACT)


def later_tokens_change_nothing(subject: Subject) -> None:
    """A generating model's logits depend on what came before, and on nothing that comes after."""
    model, tokens = subject.load().model, subject.tokens()
    half = subject.sample.length // 2
    assert_close(as_numpy(model(tokens)[:, :half]), as_numpy(model(tokens[:, :half])), EXACT)


def padding_changes_nothing(subject: Subject) -> None:
    """Hidden states of the tokens that count, or the scores of rows, are the same with padding behind them."""
    model, tokens = subject.load().model, subject.tokens()
    half = subject.sample.length // 2
    mask = mx.broadcast_to(mx.arange(subject.sample.length) < half, tokens.shape).astype(mx.int32)
    found = model(tokens, mask)
    counted = found if subject.architecture.task == "rerank" else found[:, :half]
    assert_close(as_numpy(counted), as_numpy(model(tokens[:, :half])), EXACT)


def padding_in_front_changes_nothing(subject: Subject) -> None:
    """In a batch whose caches say how a row is filled up in front, its tokens have the logits that they have alone."""
    model: Any = subject.load().model
    tokens, length = subject.tokens(), subject.sample.length
    filled = length // 4
    cut = tokens[1:, : length - filled]
    batch = mx.concatenate([tokens[:1], mx.concatenate([mx.zeros((1, filled), mx.int32), cut], axis=1)])
    cache = model.make_cache()
    for each in cache:
        each.padding = mx.array([0, filled])
    got = _in_parts(model, batch, cache)
    assert_close(as_numpy(got[:1]), as_numpy(model(tokens[:1])), EXACT)
    assert_close(as_numpy(got[1:, filled:]), as_numpy(model(cut)), EXACT)


def the_dtype_is_kept(subject: Subject) -> None:
    """Parameters of 16 bits give answers of 16 bits; nothing is computed, for not every device can."""
    for dtype, kind in (("BF16", mx.bfloat16), ("F16", mx.float16)):
        folder = subject.new_folder()
        write_checkpoint(subject.sample, subject.architecture, folder, dtype)
        model: Any = load(folder).model
        cached = (model.make_cache(),) if subject.architecture.task == "generate" else ()
        for answers in (model(subject.tokens()), model(subject.tokens(), *cached)):
            assert answers.dtype == kind, f"parameters are {dtype}, answers {answers.dtype}"


def _in_parts(model: Any, tokens: mx.array, cache: Any) -> mx.array:
    """Answer the first half of a prompt in chunks, then token by token."""
    length = tokens.shape[1]
    starts = [*range(0, length // 2, CHUNK), *range(length // 2 // CHUNK * CHUNK + CHUNK, length)]
    ends = [*starts[1:], length]
    return mx.concatenate([model(tokens[:, a:b], cache) for a, b in zip(starts, ends, strict=True)], axis=1)
