"""The text that goes before every text to embed: which one, and how many tokens of a row are its.

Format: `prompts` and `default_prompt_name` of `config_sentence_transformers.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.configs.json_file import read_json_object

if TYPE_CHECKING:
    from weightloom.runtime.tokenizing.tokenizer import Tokenizer

_PROMPTS = "config_sentence_transformers.json"


def read_prompts(folder: Path) -> tuple[Mapping[str, str], str | None]:
    """Read a model's own prompts by name, and the name of its default one; raises ConfigError for a wrong setting."""
    path = folder / _PROMPTS
    content = read_json_object(path)
    prompts, default = content.get("prompts") or {}, content.get("default_prompt_name")
    texts = isinstance(prompts, dict) and all(isinstance(text, str) for text in prompts.values())
    if not texts:
        raise ConfigError(f"prompts is {prompts!r}", expected="texts by name", file=path, field="prompts")
    if default is not None and not (isinstance(default, str) and default in prompts):
        known = ", ".join(prompts) or "none"
        raise ConfigError(
            f"default_prompt_name is {default!r}",
            expected=f"the name of a prompt: {known}",
            file=path,
            field="default_prompt_name",
        )
    return prompts, default


def prompt_for(prompts: Mapping[str, str], default: str | None, prompt: str | None, name: str | None) -> str:
    """Give the prompt that was given, else the named one, else the default one; "" where there is none.

    Raises UsageError for a name that the model's files do not have, and where both were given.
    """
    if prompt is not None and name is not None:
        raise UsageError("prompt and prompt_name were both given", expected="one of them", field="prompt")
    if prompt is not None:
        return prompt
    wanted = default if name is None else name
    if wanted is None:
        return ""
    if wanted not in prompts:
        raise UsageError(
            f"there is no prompt {wanted!r}",
            expected=f"one of {', '.join(prompts)}" if prompts else "a model with prompts of its own",
            hint="give the text itself",
            field="prompt_name",
        )
    return prompts[wanted]


def length_of(tokenizer: Tokenizer, prompt: str) -> int:
    """Count the tokens at the start of a row that are a prompt's, with the special ones before it."""
    if not prompt:
        return 0
    found = tokenizer.backend.encode(prompt)
    return len(found.ids) - (1 if found.special_tokens_mask[-1] else 0)
