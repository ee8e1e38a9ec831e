"""What a model continues: a text, token ids or messages, as token ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weightloom.engine.errors import UsageError
from weightloom.runtime.running.token_ids import need_known_ids

if TYPE_CHECKING:
    from weightloom.runtime.model import LoadedModel

_FORMS = "a text, token ids alone, or messages alone (mappings with role and content)"

Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]]


def prompt_ids(
    m: LoadedModel, prompt: Prompt, chat_template: str | None = None, called: str = "the prompt"
) -> list[int]:
    """Give a prompt's token ids; a template writes its own special tokens. Errors say what it is `called`."""
    if not isinstance(prompt, Iterable):
        raise UsageError(f"{called} is {prompt!r}", expected=_FORMS, field="prompt")
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
        raise UsageError(f"{called} has no tokens", expected="a prompt of one token at least", field="prompt")
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
            expected=_FORMS,
            field="prompt",
        )
    return [item for item in prompt if isinstance(item, Mapping)]
