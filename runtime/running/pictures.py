"""Pictures, sound and video in a prompt: refused, with the reason, by a model that has no tower for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine.errors import UsageError

if TYPE_CHECKING:
    from weightloom.runtime.model import LoadedModel

_TEXT = "text"


def refuse_media(m: LoadedModel, prompt: object, images: Sequence[str | Path]) -> None:
    """Raise UsageError where a prompt brings more than text: no installed model takes it yet.

    `images` are files beside the prompt; in chat messages, each part of a `content` that is not of type `text` counts.
    """
    found = [f"an image ({image})" for image in images] + [f"a part of type {kind!r}" for kind in _parts(prompt)]
    if found:
        raise UsageError(
            f"the prompt has {found[0]}, and {m.path} was loaded {_as_what(m)}",
            expected="a prompt of text alone",
            hint="leave it out, or take a model and an architecture that see",
            file=m.path,
            field="images" if images else "content",
        )


def _as_what(m: LoadedModel) -> str:
    if m.half is not None:
        return f"as its text model alone, without a tower ({m.half.note})"
    vision = m.decision.evidence.vision
    if not vision.present:
        return f"without a vision tower (text-only checkpoint: {vision.why})"
    return f"by {m.architecture.name}, which generates from text alone"


def _parts(prompt: object) -> Iterator[str]:
    """Give the type of each part of messages that is not text."""
    listed: Sequence[Any] = prompt if isinstance(prompt, list | tuple) else ()
    for message in listed:
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in content if isinstance(content, list | tuple) else ():
            kind = part.get("type") if isinstance(part, Mapping) else _TEXT
            if kind != _TEXT:
                yield str(kind)
