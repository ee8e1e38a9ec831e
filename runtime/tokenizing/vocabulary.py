"""A directory's vocabulary, of whatever kind, as one object of the tokenizers library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers

from weightloom.engine.errors import ConfigError
from weightloom.engine.show import shown
from weightloom.plugins.discovery.vocabularies import read_offered
from weightloom.runtime.configs.config import parse
from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.tokenizing.byte_vocabulary import byte_backend
from weightloom.runtime.tokenizing.framing import frame
from weightloom.runtime.tokenizing.sentencepiece_backend import sentencepiece_backend
from weightloom.runtime.tokenizing.sentencepiece_classes import sentencepiece_use
from weightloom.runtime.tokenizing.sentencepiece_model import SentencePieceModel, read_sentencepiece
from weightloom.runtime.tokenizing.special_tokens import SETTINGS, SpecialTokens, add_special
from weightloom.runtime.tokenizing.stated_token import Finding
from weightloom.runtime.tokenizing.tekken import read_tekken
from weightloom.runtime.tokenizing.tiktoken_file import read_tiktoken, tiktoken_kind
from weightloom.runtime.tokenizing.vocabulary_file import bad_vocabulary, found_whole
from weightloom.runtime.tokenizing.vocabulary_search import Vocabulary


@dataclass(frozen=True)
class Read:
    """A vocabulary that was read: the tokens with a role by the file itself, and whether they go around texts."""

    backend: tokenizers.Tokenizer
    roles: Mapping[str, str] = field(default_factory=dict)
    begins: bool = False
    ends: bool = False


def read_vocabulary(file: Path, kind: Vocabulary, stated: SpecialTokens) -> tuple[tokenizers.Tokenizer, dict[str, str]]:
    """Give the tokenizer and the tokens with a name, those of the files beside it before the vocabulary's own.

    `stated` are the special tokens of those files, which are made special; with ids, which must be the same. Raises
    ConfigError for files that do not have their form or do not fit each other.
    """
    settings = read_json_object(file.parent / SETTINGS)
    found = _READERS[kind](file, settings, stated)
    if kind is Vocabulary.TOKENIZER_JSON:
        _add_by_id(file, found.backend, stated.described, stated.findings)
    else:
        _add_by_id(file, found.backend, stated.by_id, stated.findings)
        _find_as_stated(found.backend, stated.findings)
    own = {name: text for name, text in found.roles.items() if name not in stated.absent}
    named = {**own, **stated.named}
    add_special(found.backend, iter([*named.values(), *stated.further]), stated.findings)
    if kind is not Vocabulary.TOKENIZER_JSON:
        _frame(file.parent / SETTINGS, settings, found, named)
    return found.backend, named


def _tokenizer_json(file: Path, _: Mapping[str, Any], __: SpecialTokens) -> Read:
    try:
        backend = tokenizers.Tokenizer.from_file(str(file))
        backend.encode(_PROBE)
        return Read(backend)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises bare Exception, and panics that are not even that
        raise ConfigError(
            f"the tokenizer cannot be read: {error}",
            expected="a tokenizer.json that the tokenizers library reads",
            hint="download the file again",
            file=file,
        ) from error


def _tekken(file: Path, _: Mapping[str, Any], __: SpecialTokens) -> Read:
    vocabulary = read_tekken(file)
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    roles = {name: text for name, text in names.items() if text in vocabulary.special}
    return Read(byte_backend(vocabulary), roles, begins=True)


def _tiktoken(file: Path, settings: Mapping[str, Any], stated: SpecialTokens) -> Read:
    kind = tiktoken_kind(file, _class_name(file, settings))
    vocabulary = read_tiktoken(file, kind, stated.special_by_id)
    roles = {"bos_token": kind.first, "eos_token": kind.end}
    there = {name: text for name, text in roles.items() if text is not None and text in vocabulary.special}
    return Read(byte_backend(vocabulary), there, begins=kind.begins)


def _sentencepiece(file: Path, settings: Mapping[str, Any], _: SpecialTokens) -> Read:
    model = read_sentencepiece(file)
    use = sentencepiece_use(model, _class_name(file, settings), settings.get("extra_ids"))
    backend = sentencepiece_backend(model)
    found_whole(backend, use.further, special=True)
    return Read(backend, _roles(model), use.begins, use.ends)


def _offered(file: Path, _: Mapping[str, Any], __: SpecialTokens) -> Read:
    found = read_offered(file)
    if not isinstance(found, tokenizers.Tokenizer):
        raise bad_vocabulary(file, f"its reader gives {type(found).__name__}", "a tokenizers.Tokenizer")
    return Read(found)


def _roles(model: SentencePieceModel) -> dict[str, str]:
    ids = {"bos_token": model.bos, "eos_token": model.eos, "pad_token": model.pad, "unk_token": model.unknown}
    return {name: text for name, number in ids.items() if (text := model.text(number)) is not None}


_READERS: Mapping[Vocabulary, Callable[[Path, Mapping[str, Any], SpecialTokens], Read]] = {
    Vocabulary.TOKENIZER_JSON: _tokenizer_json,
    Vocabulary.TEKKEN: _tekken,
    Vocabulary.TIKTOKEN: _tiktoken,
    Vocabulary.SENTENCEPIECE: _sentencepiece,
    Vocabulary.OFFERED: _offered,
}
# Has a character that no vocabulary has as a token: what a file says of unknown ones and of ends is then used.
_PROBE = "a \U0010fffd"
_PLAIN = Finding(special=False, lstrip=False, rstrip=False, single_word=False, normalized=False)
# What says no more than that there is a tokenizer.
_ANY_CLASS = {None, "PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"}


def _class_name(file: Path, settings: Mapping[str, Any]) -> str | None:
    """The tokenizer's class, by tokenizer_config.json or, of the model's config, the one field that is read."""
    config = file.parent / "config.json"
    for content in (settings, parse(config.read_bytes(), config) if config.is_file() else {}):
        name = content.get("tokenizer_class")
        if name is not None and not isinstance(name, str):
            raise bad_vocabulary(file, f"tokenizer_class is {shown(name)}", "the name of a class", "tokenizer_class")
        if name not in _ANY_CLASS:
            return name
    return None


def _add_by_id(
    file: Path, backend: tokenizers.Tokenizer, by_id: Mapping[int, str], findings: Mapping[str, Finding]
) -> None:
    """Add the tokens that are stated with an id, which must be the one that the vocabulary gives them."""
    for number, text in sorted(by_id.items()):
        backend.add_tokens([findings.get(text, _PLAIN).of(text)])
        if backend.token_to_id(text) != number:
            raise ConfigError(
                f"the token {text!r} has the id {backend.token_to_id(text)}",
                expected=f"{number}, as the files beside it state",
                hint="download the tokenizer's files again, or correct the id",
                file=file,
                field=f"added_tokens_decoder.{number}",
            )


def _find_as_stated(backend: tokenizers.Tokenizer, findings: Mapping[str, Finding]) -> None:
    """Of the tokens that the vocabulary has, those that say how they are found are found so."""
    there = (text for text in findings if backend.token_to_id(text) is not None)
    backend.add_tokens([findings[text].of(text) for text in there])


def _frame(file: Path, settings: Mapping[str, Any], found: Read, named: Mapping[str, str]) -> None:
    defaults = {"bos": found.begins, "eos": found.ends}
    texts: dict[str, str | None] = {}
    for role, default in defaults.items():
        key = f"add_{role}_token"
        asked = settings.get(key)
        if asked is not None and not isinstance(asked, bool):
            raise ConfigError(f"{key} is {shown(asked)}", expected="true or false", file=file, field=key)
        text = named.get(f"{role}_token")
        if asked and text is None:
            raise ConfigError(f"{key} is true", expected=f"a {role}_token to add", file=file, field=key)
        texts[role] = text if (default if asked is None else asked) else None
    frame(found.backend, texts["bos"], texts["eos"])
