"""The vocabulary of a GGUF: tokens with their types, and the tokenizer's settings, checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from weightloom.engine.show import listed
from weightloom.runtime.gguf.fields import Fields

PREFIX = "tokenizer.ggml"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id with their types (as the GGUF specification numbers them), and the keys they came from."""

    fields: Fields
    tokens: tuple[str, ...]
    types: tuple[int, ...]

    @property
    def ids(self) -> dict[str, int]:
        """Give each token's id."""
        return {token: number for number, token in enumerate(self.tokens)}

    def of_type(self, *types: int) -> list[str]:
        """Give the tokens of some types."""
        return [token for token, kind in zip(self.tokens, self.types, strict=True) if kind in types]

    def named(self, name: str) -> str | None:
        """Give the token that `NAME_token_id` says, or None where nothing does."""
        key = f"{PREFIX}.{name}_token_id"
        if key not in self.fields.values:
            return None
        number = self.fields.whole(key)
        if number >= len(self.tokens):
            raise self.fields.bad(key, f"less than {len(self.tokens)}, the number of tokens")
        return self.tokens[number]


def read_vocabulary(fields: Fields) -> Vocabulary:
    """Read the tokens. Raises ConfigError where they are not there, twice there, or their types do not fit them."""
    tokens = fields.many(f"{PREFIX}.tokens", str)
    if len(set(tokens)) != len(tokens):
        twice = [token for token, count in Counter(tokens).items() if count > 1]
        raise fields.bad(f"{PREFIX}.tokens", f"each token once; there twice: {listed(twice)}")
    key = f"{PREFIX}.token_type"
    types = fields.many(key, int, len(tokens)) if key in fields.values else (NORMAL,) * len(tokens)
    return Vocabulary(fields, tokens, types)
