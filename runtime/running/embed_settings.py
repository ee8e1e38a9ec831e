"""How hidden states become an embedding, as the files beside a model say: pooling, what follows it, length, prompts.

`modules.json` lists the steps, each with its settings in a folder; `config_sentence_transformers.json` has the prompts.
Format: the Sentence Transformers documentation, "Creating Custom Models".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from weightloom.engine.errors import ConfigError
from weightloom.runtime.opening.sentence_steps import LIST, SETTINGS, read_steps
from weightloom.runtime.running.dense import DenseSettings, read_dense
from weightloom.runtime.running.pooling_file import Pooling, read_pooling
from weightloom.runtime.running.prompts import read_prompts
from weightloom.runtime.running.text_settings import TextSettings, read_text_settings

if TYPE_CHECKING:
    from weightloom.plugins.judging.steps import Step, Steps

_WITHOUT_EFFECT = ("Transformer", "Dropout")


@dataclass(frozen=True, slots=True)
class Normalize:
    """A step that gives each vector the length 1."""


After: TypeAlias = DenseSettings | Normalize


@dataclass(frozen=True)
class EmbedSettings:
    """How texts become vectors; `pooling` None where the files do not say.

    `after` are the steps that follow the pooling. `prompts` are texts that may be put before others, by name,
    `default_prompt` the name of the one that is without being asked for.
    """

    pooling: Pooling | None = None
    after: tuple[After, ...] = ()
    text: TextSettings = field(default_factory=TextSettings)
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


def read_settings(folder: Path) -> EmbedSettings:
    """Read the files of a model's directory; raises ConfigError for a step that is not known, or a wrong setting."""
    steps = read_steps(folder)
    pooling, after = (None, ()) if steps is None else _steps(folder, steps)
    prompts, default = read_prompts(folder)
    return EmbedSettings(pooling, after, read_text_settings(folder, steps), prompts, default)


def _steps(folder: Path, steps: Steps) -> tuple[Pooling | None, tuple[After, ...]]:
    pooled = [step for step in steps.listed if step.kind == "Pooling"]
    if len(pooled) > 1:
        raise _wrong_step(folder, "two Pooling steps", "one")
    before = steps.listed[: steps.listed.index(pooled[0])] if pooled else steps.listed
    early = next((step for step in before if step.kind not in _WITHOUT_EFFECT), None)
    if early is not None:
        raise _wrong_step(folder, f"a step {early.kind!r} before any Pooling", "Transformer, then Pooling")
    rest = steps.listed[len(before) + 1 :]
    pooling = read_pooling(folder / pooled[0].path / SETTINGS) if pooled else None
    return pooling, tuple(_after(folder, rest))


def _after(folder: Path, steps: tuple[Step, ...]) -> Iterator[After]:
    for step in steps:
        if step.kind == "Normalize":
            yield Normalize()
        elif step.kind == "Dense":
            yield read_dense(folder / step.path)
        elif step.kind not in _WITHOUT_EFFECT:
            raise _wrong_step(folder, f"a step {step.kind!r}", "Transformer, Pooling, Dense, Normalize")


def _wrong_step(folder: Path, seen: str, expected: str) -> ConfigError:
    return ConfigError(
        f"{LIST} has {seen}",
        expected=expected,
        hint="this model needs a step that is not supported",
        file=folder / LIST,
        field="type",
    )
