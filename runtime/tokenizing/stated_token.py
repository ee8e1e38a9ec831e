"""A token as tokenizer_config.json states it: a text, or an object that also says how the token is found in a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from weightloom.engine.errors import ConfigError
from weightloom.engine.show import shown


@dataclass(frozen=True, slots=True)
class Finding:
    """How a token is found in a text: as no text of its own (`special`), with the spaces before or after it, not within
    a word, and in the text as it is or as it is prepared (`normalized`)."""

    special: bool
    lstrip: bool
    rstrip: bool
    single_word: bool
    normalized: bool

    def of(self, text: str) -> AddedToken:
        """Give a token that is found so."""
        return AddedToken(
            text,
            single_word=self.single_word,
            lstrip=self.lstrip,
            rstrip=self.rstrip,
            normalized=self.normalized,
            special=self.special,
        )


@dataclass(frozen=True, slots=True)
class StatedToken:
    """A token's text; `finding` is None where the file has no more than that."""

    text: str
    finding: Finding | None = None


def stated_token(file: Path, field: str, value: Any) -> StatedToken | None:
    """Read a text, an object with its text in `content`, or null; raises ConfigError, with the field, for another."""
    if value is None:
        return None
    text = value.get("content") if isinstance(value, Mapping) else value
    if not isinstance(text, str) or not text:
        raise bad_token(file, field, value, "a text, or an object with the text in content")
    return StatedToken(text, _finding(file, field, value) if isinstance(value, Mapping) else None)


def bad_token(file: Path, field: str, value: Any, expected: str) -> ConfigError:
    """Give the error for what is no token."""
    return ConfigError(
        f"{field} is {shown(value)}", expected=expected, hint="correct or remove the field", file=file, field=field
    )


def _finding(file: Path, field: str, value: Mapping[str, Any]) -> Finding:
    special = _flag(file, field, value, "special", False)
    return Finding(
        special,
        lstrip=_flag(file, field, value, "lstrip", False),
        rstrip=_flag(file, field, value, "rstrip", False),
        single_word=_flag(file, field, value, "single_word", False),
        normalized=_flag(file, field, value, "normalized", not special),
    )


def _flag(file: Path, field: str, value: Mapping[str, Any], name: str, default: bool) -> bool:
    stated = value.get(name)
    if stated is not None and not isinstance(stated, bool):
        raise bad_token(file, f"{field}.{name}", stated, "true or false")
    return default if stated is None else stated
