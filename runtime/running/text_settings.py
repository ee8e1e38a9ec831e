"""How long a text may be, and whether it is made lower case first, as the files beside a model say.

`max_seq_length` of `sentence_bert_config.json` goes before `model_max_length` of `tokenizer_config.json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.configs.json_file import read_json_object

if TYPE_CHECKING:
    from weightloom.plugins.judging.steps import Steps
    from weightloom.runtime.model import LoadedModel

_TEXT = "sentence_bert_config.json"
_TOKENIZER = "tokenizer_config.json"
# A tokenizer without a length says an enormous one.
_NO_LENGTH = 1_000_000
_LEAST = 3


@dataclass(frozen=True, slots=True)
class TextSettings:
    """The most tokens of a row, special ones too (None: no limit), and whether texts are made lower case."""

    max_length: int | None = None
    lower_case: bool = False


def read_text_settings(folder: Path, steps: Steps | None) -> TextSettings:
    """Read them from the folder of the Transformer step, else the model's own; raises ConfigError for a wrong one."""
    listed = () if steps is None else steps.listed
    place = folder / next((step.path for step in listed if step.kind == "Transformer"), "")
    path = place / _TEXT
    found = read_json_object(path)
    length, lower_case = found.get("max_seq_length"), found.get("do_lower_case", False)
    sound = length is None or (isinstance(length, int) and not isinstance(length, bool) and length >= _LEAST)
    if not sound or not isinstance(lower_case, bool):
        raise ConfigError(
            f"max_seq_length is {length!r}, do_lower_case is {lower_case!r}",
            expected="more than 2 tokens or null; true or false",
            file=path,
            field="max_seq_length" if not sound else "do_lower_case",
        )
    return TextSettings(_tokenizer_length(place / _TOKENIZER) if length is None else length, lower_case)


def row_limit(m: LoadedModel, settings: TextSettings, asked: int | None) -> int | None:
    """Give the most tokens of a row: what is asked for, else the files', and never more than the position table has.

    Raises UsageError for a limit that leaves no room.
    """
    if asked is not None and asked < _LEAST:
        raise UsageError(f"max_length is {asked}", expected="3 tokens at least", field="max_length")
    wanted = settings.max_length if asked is None else asked
    return min((n for n in (wanted, getattr(m.model, "max_length", None)) if n), default=None)


def _tokenizer_length(path: Path) -> int | None:
    found = read_json_object(path).get("model_max_length")
    if found is None or (isinstance(found, int | float) and found >= _NO_LENGTH):
        return None
    whole = isinstance(found, int | float) and not isinstance(found, bool) and found == found // 1
    if not whole or found < _LEAST:
        raise ConfigError(
            f"model_max_length is {found!r}", expected="more than 2 tokens", file=path, field="model_max_length"
        )
    return int(found)
