"""The special tokens that the files beside a vocabulary state, in each form that they are stated in.

tokenizer_config.json has roles (`bos_token`, ...), `added_tokens_decoder` (tokens by id) and `extra_special_tokens`: a
list of tokens, or an object of named ones such as `image_token`; also as `additional_special_tokens`, a list, and
`model_specific_special_tokens`, an object. special_tokens_map.json has some of the same; what the former says counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from weightloom.engine.errors import ConfigError
from weightloom.engine.show import shown
from weightloom.runtime.configs.json_file import read_json_object

SETTINGS = "tokenizer_config.json"
_MAP = "special_tokens_map.json"
_ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")
_NAMED = ("model_specific_special_tokens", "extra_special_tokens")
_LISTED = ("additional_special_tokens", "extra_special_tokens")


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Tokens by name (roles and named ones), further ones, and those stated with an id (True: special).

    `absent` are the roles that the files state as null: the model has no such token, whatever its vocabulary has.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    further: tuple[str, ...] = ()
    by_id: Mapping[int, tuple[str, bool]] = field(default_factory=dict)

    @property
    def special_by_id(self) -> dict[int, str]:
        """Give the texts of the special ones that are stated with an id."""
        return {number: text for number, (text, special) in self.by_id.items() if special}


def read_special_tokens(directory: Path) -> SpecialTokens:
    """Read what a directory's files state; raises ConfigError, with the field, for a token that is no text."""
    named: dict[str, str | None] = {}
    further: dict[str, None] = {}
    by_id: dict[int, tuple[str, bool]] = {}
    for name in (_MAP, SETTINGS):
        file = directory / name
        content = read_json_object(file)
        named |= dict(_named(file, content))
        further |= dict.fromkeys(_listed(file, content))
        by_id |= _by_id(file, content)
    there = {name: text for name, text in named.items() if text is not None}
    return SpecialTokens(there, frozenset(named) - frozenset(there), tuple(further), by_id)


def add_special(backend: tokenizers.Tokenizer, texts: Iterator[str]) -> None:
    """Make tokens special in `backend`: new ones get the next ids, known ones keep theirs and how they are found."""
    known = {token.content: token for token in backend.get_added_tokens_decoder().values()}
    wanted = [text for text in dict.fromkeys(texts) if text not in known or not known[text].special]
    backend.add_special_tokens([_special(known.get(text, AddedToken(text, normalized=False))) for text in wanted])


def _special(token: AddedToken) -> AddedToken:
    return AddedToken(
        token.content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=token.normalized,
        special=True,
    )


def _named(file: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    for role in (role for role in _ROLES if role in content):
        yield role, _text(file, role, content.get(role))
    for key in _NAMED:
        value = content.get(key)
        for name, token in value.items() if isinstance(value, Mapping) else ():
            yield name, _text(file, f"{key}.{name}", token)


def _listed(file: Path, content: Mapping[str, Any]) -> Iterator[str]:
    for key in _LISTED:
        value = content.get(key)
        if value is not None and not isinstance(value, list | Mapping):
            raise _bad(file, key, value, "a list of tokens, or an object of named ones")
        for number, token in enumerate(value if isinstance(value, list) else ()):
            text = _text(file, f"{key}[{number}]", token)
            if text is not None:
                yield text


def _by_id(file: Path, content: Mapping[str, Any]) -> dict[int, tuple[str, bool]]:
    key = "added_tokens_decoder"
    stated = content.get(key) or {}
    if not isinstance(stated, Mapping):
        raise _bad(file, key, stated, "an object of tokens by id")
    found: dict[int, tuple[str, bool]] = {}
    for number, token in stated.items():
        text = _text(file, f"{key}.{number}", token)
        if text is None or not (number.isascii() and number.isdigit() and len(number) < 10):
            raise _bad(file, f"{key}.{number}", token, "a token by its id")
        found[int(number)] = (text, isinstance(token, Mapping) and token.get("special") is True)
    return found


def _text(file: Path, field: str, token: Any) -> str | None:
    """A special token is a text, an object with its text in `content`, or null."""
    value = token.get("content") if isinstance(token, Mapping) else token
    if value is None and token is None:
        return None
    if not isinstance(value, str) or not value:
        raise _bad(file, field, token, "a text, or an object with the text in content")
    return value


def _bad(file: Path, field: str, value: Any, expected: str) -> ConfigError:
    return ConfigError(
        f"{field} is {shown(value)}", expected=expected, hint="correct or remove the field", file=file, field=field
    )
