"""Embedding texts: tokens, hidden states, pooling, normalisation, as the sentence-transformers files say.

`modules.json` lists the steps; `1_Pooling/config.json` the pooling; `sentence_bert_config.json` the length.
Format: the Sentence Transformers documentation, "Creating Custom Models".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.running.token_ids import need_known_ids

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.runtime.model import LoadedModel

Pooling = Literal["mean", "cls", "max", "last"]

_MODES: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
_BATCH = 32


@dataclass(frozen=True, slots=True)
class EmbedSettings:
    """How hidden states become an embedding; `pooling` None where the files do not say."""

    pooling: Pooling | None = None
    normalize: bool = False
    max_length: int | None = None
    lower_case: bool = False


def read_settings(directory: Path) -> EmbedSettings:
    """Read the sentence-transformers files of a directory; raises ConfigError for a step that is not known."""
    path = directory / "modules.json"
    length, lower_case = _text_settings(directory / "sentence_bert_config.json")
    if not path.is_file():
        return EmbedSettings(max_length=length, lower_case=lower_case)
    pooling: Pooling | None = None
    normalize = False
    for step in _steps(path):
        kind = str(step.get("type", "")).rpartition(".")[2]
        if kind == "Pooling":
            pooling = _pooling(_inside(directory, str(step.get("path", "")), path) / "config.json")
        elif kind == "Normalize":
            normalize = True
        elif kind != "Transformer":
            raise ConfigError(
                f"modules.json has a step {step.get('type')!r}",
                expected="Transformer, Pooling, Normalize",
                hint="this model needs a step that is not supported",
                file=path,
                field="type",
            )
    return EmbedSettings(pooling, normalize, length, lower_case)


def _text_settings(path: Path) -> tuple[int | None, bool]:
    """The most tokens of a text, and whether it is made lower case first."""
    found = read_json_object(path)
    length, lower_case = found.get("max_seq_length"), found.get("do_lower_case", False)
    sound = length is None or (isinstance(length, int) and not isinstance(length, bool) and length > 2)
    if not sound or not isinstance(lower_case, bool):
        raise ConfigError(
            f"max_seq_length is {length!r}, do_lower_case is {lower_case!r}",
            expected="more than 2 tokens or null; true or false",
            file=path,
            field="max_seq_length" if not sound else "do_lower_case",
        )
    return length, lower_case


def _inside(directory: Path, name: str, file: Path) -> Path:
    """A step's folder; a name that leads out of the model's directory is refused."""
    parts = Path(name).parts
    if Path(name).is_absolute() or ".." in parts:
        raise ConfigError(f"a step is at {name!r}", expected="a folder of the model", file=file, field="path")
    return directory / name


def _steps(path: Path) -> list[Mapping[str, Any]]:
    try:
        steps = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot be read as JSON: {error}", expected="a list of steps", file=path) from error
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise ConfigError("is not a list of objects", expected="a list of steps", file=path)
    return steps


def _pooling(path: Path) -> Pooling:
    config = read_json_object(path)
    chosen: list[Pooling] = [mode for name, mode in _MODES.items() if config.get(name) is True]
    others = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    named = config.get("pooling_mode")
    if isinstance(named, str) and not others:
        chosen = [mode for mode in _MODES.values() if mode == named.replace("lasttoken", "last")]
        others = [named]
    if len(chosen) != 1 or len(others) != 1:
        raise ConfigError(
            f"chooses the pooling {', '.join(others) or '(none)'}",
            expected=f"one of {', '.join(_MODES)}",
            file=path,
            field="pooling_mode",
        )
    return chosen[0]


def embed(
    m: LoadedModel, texts: Sequence[str], *, pooling: Pooling | None = None, normalize: bool | None = None
) -> mx.array:
    """Embed texts: float32 (N, D), rows in order. `pooling` and `normalize` override what the files say.

    Raises UsageError for a model that does not embed, no texts, or a pooling that neither says.
    """
    import mlx.core as mx

    if m.task != "embed":
        raise UsageError(
            f"{m.architecture.name} is for {m.task}", expected="an embedding model", hint=f"use `{m.task}`"
        )
    if isinstance(texts, str) or not texts:
        raise UsageError("no list of texts was given", expected="one text at least", field="texts")
    settings = m.embed_settings
    how = pooling or settings.pooling
    if how is None or how not in get_args(Pooling):
        raise UsageError(
            f"the pooling is {how!r}",
            expected=", ".join(get_args(Pooling)),
            hint="give it; the directory has no sentence-transformers files that say",
            field="pooling",
        )
    limits = [n for n in (settings.max_length, getattr(m.model, "max_length", None)) if n]
    read = [text.lower() for text in texts] if settings.lower_case else texts
    rows = m.need_tokenizer().encode_batch(read, min(limits, default=None))
    _check_rows(m, rows)
    wants_unit = settings.normalize if normalize is None else normalize
    # Rows of like length together: less padding.
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    found: dict[int, mx.array] = {}
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        vectors = _embedded(m, [rows[i] for i in batch], how, wants_unit)
        found.update(zip(batch, vectors, strict=True))
    return mx.stack([found[i] for i in range(len(rows))])


def _check_rows(m: LoadedModel, rows: Sequence[Sequence[int]]) -> None:
    for number, row in enumerate(rows):
        if not row:
            raise UsageError(
                f"text {number} has no tokens",
                expected="texts of one token at least",
                hint="leave it out",
                field="texts",
            )
        need_known_ids(m, row)


def _embedded(m: LoadedModel, rows: list[list[int]], how: Pooling, normalize: bool) -> list[mx.array]:
    import mlx.core as mx

    longest = max(len(row) for row in rows)
    tokens = mx.array([row + [0] * (longest - len(row)) for row in rows], dtype=mx.int32)
    mask = mx.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows], dtype=mx.int32)
    vectors = pool(m.model(tokens, mask).astype(mx.float32), mask, how)
    if normalize:
        vectors = vectors / mx.maximum(mx.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    mx.eval(vectors)
    return list(vectors)


def pool(hidden: mx.array, mask: mx.array, how: Pooling) -> mx.array:
    """Pool hidden states (B, L, D) under a mask (B, L) to (B, D)."""
    import mlx.core as mx

    if how == "cls":
        return hidden[:, 0]
    if how == "last":
        return hidden[mx.arange(hidden.shape[0]), mask.sum(axis=1) - 1]
    weights = mask[:, :, None].astype(hidden.dtype)
    if how == "max":
        return mx.where(weights == 0, mx.array(-float("inf")), hidden).max(axis=1)
    return (hidden * weights).sum(axis=1) / mx.maximum(weights.sum(axis=1), 1e-9)
