"""Decoding: prefill in chunks, then a token a row at a time through the cache, for one prompt or a batch of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from weightloom.engine.errors import UsageError
from weightloom.runtime.loading.ranks import agreed
from weightloom.runtime.running.sampling import Sampling, choose, keys

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.runtime.model import LoadedModel

_PREFILL = 2048


def generate_ids(m: LoadedModel, ids: Sequence[int], max_tokens: int, how: Sampling | None = None) -> Iterator[int]:
    """Give the ids that follow, up to and without the model's end of text; works without a tokenizer."""
    stops = stop_ids(m)
    for tokens in batch_tokens(m, [ids], max_tokens, how or Sampling()):
        found = cast(int, tokens.item())
        if found in stops:
            return
        yield found


def stop_ids(m: LoadedModel) -> frozenset[int]:
    """Give the ids that end a text."""
    return m.tokenizer.stop_ids if m.tokenizer is not None else frozenset()


def batch_tokens(m: LoadedModel, rows: Sequence[Sequence[int]], count: int, how: Sampling) -> Iterator[mx.array]:
    """Give token after token of each row, (B,) int; the next ones are under way while these are looked at.

    Shorter rows are filled up in front, and have the tokens that they have alone. Raises UsageError for rows of unlike
    length where the model's caches do not know of padding.
    """
    import mlx.core as mx

    if not count:
        return
    tokens, padding = _filled_up(rows)
    cache: Any = cast(Any, m.model).make_cache()
    if padding is not None:
        _pad(m, cache, padding)
    next_key, logits = keys(how.seed), _prefill(m, tokens, cache)
    seen = None if how.repetition_penalty == 1 else _seen(rows, logits.shape[-1])
    following = agreed(choose(logits, how, next(next_key), seen), m.share)
    try:
        for left in reversed(range(count)):
            now = following
            if left:
                seen = None if seen is None else _with(seen, now)
                logits = _next(m, now[:, None], cache)
                following = agreed(choose(logits, how, next(next_key), seen), m.share)
                # A step is waited for as a whole, so one token's must not hold work for the next.
                cast(Any, mx.async_eval)(following)
            yield now
    finally:
        # No exchange with other ranks may be under way when the process ends.
        mx.eval(following)


def _filled_up(rows: Sequence[Sequence[int]]) -> tuple[mx.array, mx.array | None]:
    """Give rows as one array (B, L), 0 in front of shorter ones, and by how much each was filled up; None for none."""
    import mlx.core as mx

    longest = max(map(len, rows))
    more = [longest - len(row) for row in rows]
    tokens = mx.array([[*[0] * fill, *row] for fill, row in zip(more, rows, strict=True)], dtype=mx.int32)
    return tokens, mx.array(more, dtype=mx.int32) if any(more) else None


def _pad(m: LoadedModel, cache: Any, padding: mx.array) -> None:
    if not all(hasattr(each, "padding") for each in cache):
        raise UsageError(
            f"{m.architecture.name} has caches without `padding`",
            expected="prompts of one length in a batch",
            hint="generate for one prompt after another",
            field="prompts",
        )
    for each in cache:
        each.padding = padding


def _seen(rows: Sequence[Sequence[int]], vocab_size: int) -> mx.array:
    """Say which tokens each row has, (B, vocab) bool."""
    import mlx.core as mx

    found = mx.zeros((len(rows), vocab_size), mx.bool_)
    for number, row in enumerate(rows):
        found[number, mx.array(list(row))] = True
    return found


def _with(seen: mx.array, tokens: mx.array) -> mx.array:
    import mlx.core as mx

    return seen | (mx.arange(seen.shape[1])[None, :] == tokens[:, None])


def _prefill(m: LoadedModel, tokens: mx.array, cache: Any) -> mx.array:
    """Feed prompts (B, L) in chunks; give the logits (B, vocab) after the last token."""
    import mlx.core as mx

    last = (tokens.shape[1] - 1) // _PREFILL * _PREFILL
    for start in range(0, last, _PREFILL):
        mx.eval(_body(m)(tokens[:, start : start + _PREFILL], cache))
    return _next(m, tokens[:, last:], cache)


def _body(m: LoadedModel) -> Callable[[mx.array, Any], mx.array]:
    """Give what runs the layers: without the head, where the model has one of its own."""
    from weightloom.plugins.layers.headed import Headed

    model: Any = m.model
    run: Callable[[mx.array, Any], mx.array] = model.body if isinstance(model, Headed) else model
    return run


def _next(m: LoadedModel, tokens: mx.array, cache: Any) -> mx.array:
    """Logits (B, vocab) after tokens (B, L)."""
    from weightloom.plugins.layers.headed import Headed

    model: Any = m.model
    logits: mx.array
    logits = model.head(model.body(tokens, cache)[:, -1:]) if isinstance(model, Headed) else model(tokens, cache=cache)
    return logits[:, -1]
