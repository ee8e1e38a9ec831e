"""Generating text: prefill in chunks, then a token at a time through the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from weightloom.engine.errors import UsageError
from weightloom.runtime.loading.ranks import agreed
from weightloom.runtime.running.pictures import refuse_media
from weightloom.runtime.running.refusals import need_task
from weightloom.runtime.running.token_ids import need_known_ids

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.runtime.model import LoadedModel

Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]]

_PREFILL = 2048


@overload
def generate(
    m: LoadedModel,
    prompt: Prompt,
    max_tokens: int = ...,
    temperature: float = ...,
    stream: Literal[False] = ...,
    seed: int | None = ...,
    chat_template: str | None = ...,
    images: Sequence[str | Path] = ...,
) -> str: ...
@overload
def generate(
    m: LoadedModel,
    prompt: Prompt,
    max_tokens: int = ...,
    temperature: float = ...,
    *,
    stream: Literal[True],
    seed: int | None = ...,
    chat_template: str | None = ...,
    images: Sequence[str | Path] = ...,
) -> Iterator[str]: ...
def generate(
    m: LoadedModel,
    prompt: Prompt,
    max_tokens: int = 256,
    temperature: float = 0.0,
    stream: bool = False,
    seed: int | None = None,
    chat_template: str | None = None,
    images: Sequence[str | Path] = (),
) -> str | Iterator[str]:
    """Continue a prompt: plain text, token ids, or chat messages (rendered by the model's template).

    `temperature` 0 takes the most likely token. With `stream` the text comes in pieces, never in the middle of a
    character. `chat_template` names one of several templates. Raises UsageError for a model that does not generate, an
    empty prompt, a template that is not there, or `images` (or parts of messages that are not text) for a model without
    a tower for them.
    """
    _check(m, max_tokens, temperature)
    refuse_media(m, prompt, images)
    ids = prompt_ids(m, prompt, chat_template)
    pieces = m.need_tokenizer().stream(generate_ids(m, ids, max_tokens, temperature, seed))
    return pieces if stream else "".join(pieces)


def prompt_ids(m: LoadedModel, prompt: Prompt, chat_template: str | None = None) -> list[int]:
    """Give a prompt's token ids; a template writes its own special tokens."""
    if isinstance(prompt, str) or all(isinstance(item, int) for item in prompt):
        _refuse_template(chat_template)
    if isinstance(prompt, str):
        ids = m.need_tokenizer().encode(prompt)
    elif all(isinstance(item, int) for item in prompt):
        ids = [item for item in prompt if isinstance(item, int)]
    else:
        tokenizer = m.need_tokenizer()
        text = tokenizer.apply_chat_template(_messages(prompt), chat_template=chat_template)
        ids = tokenizer.encode(text, add_special_tokens=False)
    if not ids:
        raise UsageError("the prompt has no tokens", expected="a prompt of one token at least", field="prompt")
    need_known_ids(m, ids)
    return ids


def _refuse_template(name: str | None) -> None:
    if name is not None:
        raise UsageError(
            f"the chat template {name!r} was chosen for a prompt that is no conversation",
            expected="messages (mappings with role and content)",
            field="chat_template",
        )


def _messages(prompt: Sequence[Any]) -> list[Mapping[str, Any]]:
    wrong = [item for item in prompt if not isinstance(item, Mapping)]
    if wrong:
        raise UsageError(
            f"the prompt holds {wrong[0]!r}",
            expected="a text, token ids alone, or messages alone (mappings with role and content)",
            field="prompt",
        )
    return [item for item in prompt if isinstance(item, Mapping)]


def generate_ids(
    m: LoadedModel, ids: Sequence[int], max_tokens: int, temperature: float = 0.0, seed: int | None = None
) -> Iterator[int]:
    """Give the ids that follow, up to and without the model's end of text; works without a tokenizer."""
    stops = m.tokenizer.stop_ids if m.tokenizer is not None else frozenset()
    for token in _tokens(m, ids, max_tokens, temperature, seed):
        found = cast(int, token.item())
        if found in stops:
            return
        yield found


def _tokens(m: LoadedModel, ids: Sequence[int], count: int, temperature: float, seed: int | None) -> Iterator[mx.array]:
    """Give token after token, each () int; the next is under way while one is looked at."""
    import mlx.core as mx

    if not count:
        return
    keys = _keys(seed)
    cache: Any = cast(Any, m.model).make_cache()
    following = agreed(_sample(_prefill(m, ids, cache), temperature, next(keys)), m.share)
    try:
        for left in reversed(range(count)):
            token = following
            if left:
                following = agreed(_sample(_next(m, token.reshape(1, 1), cache), temperature, next(keys)), m.share)
                # A step is waited for as a whole, so one token's must not hold work for the next.
                cast(Any, mx.async_eval)(following)
            yield token
    finally:
        # No exchange with other ranks may be under way when the process ends.
        mx.eval(following)


def _keys(seed: int | None) -> Iterator[mx.array | None]:
    """Give a key a token; None, for MLX's own state, without a seed."""
    import mlx.core as mx

    if seed is None:
        yield from repeat(None)
    key = mx.random.key(seed or 0)
    while True:
        key, now = mx.random.split(key)
        yield now


def _prefill(m: LoadedModel, ids: Sequence[int], cache: Any) -> mx.array:
    """Feed the prompt in chunks; only the last one's logits count."""
    import mlx.core as mx

    tokens = mx.array([list(ids)], dtype=mx.int32)
    last = (len(ids) - 1) // _PREFILL * _PREFILL
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
    """Logits (vocab,) after tokens (1, L)."""
    from weightloom.plugins.layers.headed import Headed

    model: Any = m.model
    logits: mx.array
    logits = model.head(model.body(tokens, cache)[:, -1:]) if isinstance(model, Headed) else model(tokens, cache=cache)
    return logits[0, -1]


def _sample(logits: mx.array, temperature: float, key: mx.array | None) -> mx.array:
    import mlx.core as mx

    if temperature == 0:
        return mx.argmax(logits)
    return mx.random.categorical(logits.astype(mx.float32) / temperature, key=key)


def _check(m: LoadedModel, max_tokens: int, temperature: float) -> None:
    need_task(m, "generate")
    if max_tokens < 0 or not 0 <= temperature < float("inf"):
        raise UsageError(
            f"max_tokens {max_tokens}, temperature {temperature}", expected="finite numbers that are not negative"
        )
