"""Calls of the tokenizers library whose failures are named, whatever a file made it hold.

It raises bare Exception where a file's parts do not fit a text, and panics that are not even that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tokenizers import Tokenizer

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.engine.show import shown


def encoded(backend: Tokenizer, text: str, add_special_tokens: bool) -> list[int]:
    """Give a text's ids; raises UsageError for one with half characters, ConfigError where the vocabulary fails."""
    try:
        return list(backend.encode(text, add_special_tokens=add_special_tokens).ids)
    except (TypeError, UnicodeEncodeError) as error:
        raise UsageError(
            f"the text {text[:40]!a} has no tokens: {error}", expected="Unicode text", field="text"
        ) from error
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        _refuse(f"fails at the text {text[:40]!a}", error)


def decoded(backend: Tokenizer, ids: Sequence[int], skip_special_tokens: bool) -> str:
    """Give the text of ids; raises UsageError for what are no ids, ConfigError where the vocabulary fails."""
    try:
        return str(backend.decode(list(ids), skip_special_tokens=skip_special_tokens))
    except (TypeError, OverflowError) as error:
        raise UsageError(
            f"the ids {shown(list(ids))} have no text: {error}", expected="whole numbers from 0 on", field="ids"
        ) from error
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        _refuse(f"fails at the ids {shown(list(ids))}", error)


def _refuse(seen: str, error: BaseException) -> NoReturn:
    raise ConfigError(
        f"the tokenizer {seen}: {error}",
        expected="a vocabulary that has a token for what it does not know",
        hint="download the tokenizer's files again",
        field="tokenizer",
    ) from error
