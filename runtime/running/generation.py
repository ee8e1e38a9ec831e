"""Generating text: a prompt's continuation, whole or as it comes, or those of a batch of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, overload

from weightloom.engine.errors import UsageError
from weightloom.runtime.running.decoding import batch_tokens, generate_ids, stop_ids
from weightloom.runtime.running.generation_prompt import Prompt, prompt_ids
from weightloom.runtime.running.pictures import refuse_media
from weightloom.runtime.running.refusals import need_task
from weightloom.runtime.running.sampling import Sampling
from weightloom.runtime.running.stopping import first_stop, refuse_empty, until

if TYPE_CHECKING:
    from weightloom.runtime.model import LoadedModel


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
    *,
    top_k: int = ...,
    top_p: float = ...,
    min_p: float = ...,
    repetition_penalty: float = ...,
    stop: Sequence[str] = ...,
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
    top_k: int = ...,
    top_p: float = ...,
    min_p: float = ...,
    repetition_penalty: float = ...,
    stop: Sequence[str] = ...,
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
    *,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    stop: Sequence[str] = (),
) -> str | Iterator[str]:
    """Continue a prompt: plain text, token ids, or chat messages (rendered by the model's template).

    `temperature` 0 takes the most likely token; see `Sampling` for it and for `top_k`, `top_p`, `min_p`,
    `repetition_penalty` and `seed`. The text ends before the first of the `stop` strings. With `stream` it comes in
    pieces, never in the middle of a character. `chat_template` names one of several templates. Raises UsageError for a
    model that does not generate, an empty prompt, a number out of range, a template that is not there, or `images` (or
    parts of messages that are not text) for a model without a tower for them.
    """
    how = Sampling(temperature, top_k, top_p, min_p, repetition_penalty, seed)
    _check(m, max_tokens, stop)
    refuse_media(m, prompt, images)
    ids = prompt_ids(m, prompt, chat_template)
    pieces = until(m.need_tokenizer().stream(generate_ids(m, ids, max_tokens, how)), stop)
    return pieces if stream else "".join(pieces)


def generate_batch(
    m: LoadedModel,
    prompts: Sequence[Prompt],
    max_tokens: int = 256,
    temperature: float = 0.0,
    seed: int | None = None,
    chat_template: str | None = None,
    *,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    stop: Sequence[str] = (),
) -> list[str]:
    """Continue several prompts at once, the shorter ones filled up in front; each as `generate` continues it alone.

    Raises UsageError as `generate` does, and for a model whose caches do not know of padding.
    """
    how = Sampling(temperature, top_k, top_p, min_p, repetition_penalty, seed)
    _check(m, max_tokens, stop)
    if isinstance(prompts, str):
        raise UsageError(f"prompts is one text, {prompts[:40]!r}", expected="a list of prompts", field="prompts")
    for prompt in prompts:
        refuse_media(m, prompt, ())
    named = ((prompt, f"prompt {number} of {len(prompts)}") for number, prompt in enumerate(prompts, 1))
    rows = [prompt_ids(m, prompt, chat_template, called) for prompt, called in named]
    if not rows:
        return []
    texts = [_Row(m, stop) for _ in rows]
    for tokens in batch_tokens(m, rows, max_tokens, how):
        for text, token in zip(texts, cast("list[int]", tokens.tolist()), strict=True):
            text.take(token)
        if all(text.ended for text in texts):
            break
    return [text.text() for text in texts]


class _Row:
    """The continuation of one prompt of a batch, until it ends."""

    def __init__(self, m: LoadedModel, stops: Sequence[str]) -> None:
        self._tokenizer = m.need_tokenizer()
        self._last, self._stops = stop_ids(m), stops
        self._ids: list[int] = []
        self.ended = False

    def take(self, token: int) -> None:
        """Take the next token, unless it has ended or ends with it."""
        if self.ended or token in self._last:
            self.ended = True
            return
        self._ids.append(token)
        self.ended = bool(self._stops) and first_stop(self._tokenizer.decode(self._ids), self._stops) is not None

    def text(self) -> str:
        """Give the text, up to the first stop string."""
        return "".join(until(self._tokenizer.stream(self._ids), self._stops))


def _check(m: LoadedModel, max_tokens: int, stop: Sequence[str]) -> None:
    need_task(m, "generate")
    refuse_empty(stop)
    if max_tokens < 0:
        raise UsageError(f"max_tokens is {max_tokens}", expected="0 or more", field="max_tokens")
