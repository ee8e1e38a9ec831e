"""The special tokens that the files beside a vocabulary state, in each form that they are stated in.

tokenizer_config.json has roles (`bos_token`, ...), `added_tokens_decoder` (tokens by id) and `extra_special_tokens`: a
list of tokens, or an object of named ones such as `image_token`; also as `additional_special_tokens`, a list, and
`model_specific_special_tokens`, an object. special_tokens_map.json has some of the same; what the former says counts.
added_tokens.json has ids by token, and no more of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.tokenizing.stated_token import Finding, StatedToken, bad_token, stated_token

SETTINGS = "tokenizer_config.json"
_MAP = "special_tokens_map.json"
_ADDED = "added_tokens.json"
_ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")
_NAMED = ("model_specific_special_tokens", "extra_special_tokens")
_LISTED = ("additional_special_tokens", "extra_special_tokens")
_UNSTATED = Finding(special=True, lstrip=False, rstrip=False, single_word=False, normalized=False)


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Tokens by name (roles and named ones), further ones, those with an id, and how those are found that say so.

    `absent` are the roles that the files state as null: the model has no such token, whatever its vocabulary has.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    further: tuple[str, ...] = ()
    by_id: Mapping[int, str] = field(default_factory=dict)
    findings: Mapping[str, Finding] = field(default_factory=dict)

    @property
    def described(self) -> dict[int, str]:
        """Give those with an id of which the files say how they are found."""
        return {number: text for number, text in self.by_id.items() if text in self.findings}

    @property
    def special_by_id(self) -> dict[int, str]:
        """Give the texts of the special ones that are stated with an id."""
        return {number: text for number, text in self.described.items() if self.findings[text].special}


def read_special_tokens(directory: Path) -> SpecialTokens:
    """Read what a directory's files state; raises ConfigError, with the field, for what is no token."""
    named: dict[str, StatedToken | None] = {}
    further: list[StatedToken] = []
    by_id = _added(directory / _ADDED)
    for name in (_MAP, SETTINGS):
        file = directory / name
        content = read_json_object(file)
        named |= dict(_named(file, content))
        further += _listed(file, content)
        by_id |= _by_id(file, content)
    there = {name: token for name, token in named.items() if token is not None}
    # Roles and names are special by what they are; an entry with an id says itself whether it is.
    special = [_as_special(token) for token in (*further, *there.values())]
    return SpecialTokens(
        {name: token.text for name, token in there.items()},
        frozenset(named) - frozenset(there),
        tuple(dict.fromkeys(token.text for token in further)),
        {number: token.text for number, token in by_id.items()},
        {token.text: token.finding for token in chain(special, by_id.values()) if token.finding is not None},
    )


def add_special(backend: tokenizers.Tokenizer, texts: Iterator[str], findings: Mapping[str, Finding]) -> None:
    """Make tokens special in `backend`: new ones get the next ids, known ones keep theirs and how they are found."""
    known = {token.content: token for token in backend.get_added_tokens_decoder().values()}
    wanted = [text for text in dict.fromkeys(texts) if text not in known or not known[text].special]
    found = {text: findings.get(text, _UNSTATED).of(text) for text in wanted} | known
    backend.add_special_tokens([_special(found[text]) for text in wanted])


def _as_special(token: StatedToken) -> StatedToken:
    return token if token.finding is None else replace(token, finding=replace(token.finding, special=True))


def _special(token: AddedToken) -> AddedToken:
    return AddedToken(
        token.content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=token.normalized,
        special=True,
    )


def _named(file: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, StatedToken | None]]:
    for role in (role for role in _ROLES if role in content):
        yield role, stated_token(file, role, content.get(role))
    for key in _NAMED:
        value = content.get(key)
        for name, token in value.items() if isinstance(value, Mapping) else ():
            yield name, stated_token(file, f"{key}.{name}", token)


def _listed(file: Path, content: Mapping[str, Any]) -> Iterator[StatedToken]:
    for key in _LISTED:
        value = content.get(key)
        if value is not None and not isinstance(value, list | Mapping):
            raise bad_token(file, key, value, "a list of tokens, or an object of named ones")
        for number, each in enumerate(value if isinstance(value, list) else ()):
            token = stated_token(file, f"{key}[{number}]", each)
            if token is not None:
                yield token


def _added(file: Path) -> dict[int, StatedToken]:
    found: dict[int, StatedToken] = {}
    for text, number in read_json_object(file).items():
        if type(number) is not int or number < 0 or not text:
            raise bad_token(file, text, number, "a token's id")
        found[number] = StatedToken(text)
    return found


def _by_id(file: Path, content: Mapping[str, Any]) -> dict[int, StatedToken]:
    key = "added_tokens_decoder"
    stated = content.get(key) or {}
    if not isinstance(stated, Mapping):
        raise bad_token(file, key, stated, "an object of tokens by id")
    found: dict[int, StatedToken] = {}
    for number, each in stated.items():
        token = stated_token(file, f"{key}.{number}", each)
        if token is None or not (number.isascii() and number.isdigit() and len(number) < 10):
            raise bad_token(file, f"{key}.{number}", each, "a token by its id")
        found[int(number)] = token
    return found
