"""What a model is not for, said before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weightloom.engine.errors import UsageError

if TYPE_CHECKING:
    from weightloom.runtime.model import LoadedModel

_DOES = {"generate": "generates text", "embed": "embeds", "rerank": "scores pairs of texts"}


def need_task(m: LoadedModel, task: str) -> None:
    """Raise UsageError for a model that is for another task."""
    if m.task == task:
        return
    by_request = task in m.architecture.by_request
    hint = f'load it with task="{task}" (--task {task})' if by_request else f"use `{m.task}`"
    raise UsageError(
        f"{m.architecture.name} is for {m.task}",
        expected=f"a model that {_DOES.get(task, task)}",
        hint=hint,
        file=m.path,
        field="task",
    )


def need_texts(texts: Sequence[str], field: str = "texts") -> None:
    """Raise UsageError where there is no list of texts, or nothing in it."""
    if isinstance(texts, str) or not texts or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"no list of {field} was given", expected="one text at least", field=field)
