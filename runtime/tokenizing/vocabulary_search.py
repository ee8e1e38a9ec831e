"""Which of a directory's files is its tokenizer's vocabulary."""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

from weightloom.engine.errors import ConfigError
from weightloom.engine.show import listed
from weightloom.plugins.discovery.vocabularies import is_offered
from weightloom.runtime.tokenizing.tiktoken_file import is_tiktoken
from weightloom.runtime.tokenizing.vocabulary_file import read_vocabulary_bytes

_TOKENIZER_JSON = "tokenizer.json"
# In the order of preference; a name of the first pattern that matches is taken.
_PATTERNS = (
    *(_TOKENIZER_JSON, "tekken.json", "tekken_*.json"),
    *("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model", "spm.model"),
    *("tokenizer.model.v*", "*_tokenizer_*.model.v*", "tiktoken.model", "*.tiktoken"),
)
LOOKED_FOR = ", ".join(_PATTERNS)


class Vocabulary(Enum):
    """The kinds of file that a vocabulary is kept in."""

    TOKENIZER_JSON = "tokenizer.json"
    TEKKEN = "tekken"
    SENTENCEPIECE = "SentencePiece"
    TIKTOKEN = "tiktoken"
    OFFERED = "a package's own"


def find_vocabulary(directory: Path) -> tuple[Path, Vocabulary] | None:
    """Find the file and say what it is; None where there is none.

    Raises ConfigError where several files of one pattern could be meant, and for one that cannot be read.
    """
    names = sorted(file.name for file in directory.iterdir() if _is_file(file)) if directory.is_dir() else []
    for pattern in _PATTERNS:
        found = [name for name in names if fnmatchcase(name, pattern)]
        if len(found) > 1:
            raise _several(found, directory)
        if found:
            return directory / found[0], _kind(directory / found[0])
    offered = [directory / name for name in names if is_offered(directory / name)]
    if len(offered) > 1:
        raise _several([file.name for file in offered], directory)
    return (offered[0], Vocabulary.OFFERED) if offered else None


def _is_file(path: Path) -> bool:
    """Say whether this is a file, or a link to one that is not there: reading that says so."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def _several(names: list[str], directory: Path) -> ConfigError:
    return ConfigError(
        f"several vocabularies: {listed(names)}",
        expected="one",
        hint="keep the one that is the model's, or save a tokenizer.json",
        file=directory,
    )


def _kind(file: Path) -> Vocabulary:
    if file.name == _TOKENIZER_JSON:
        return Vocabulary.TOKENIZER_JSON
    if file.name.startswith("tekken"):
        return Vocabulary.TEKKEN
    # Publishers give files of both kinds the name tokenizer.model.
    return Vocabulary.TIKTOKEN if is_tiktoken(read_vocabulary_bytes(file)[:1000]) else Vocabulary.SENTENCEPIECE
