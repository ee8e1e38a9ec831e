"""Which of the architectures that are offered for a model type a checkpoint is for, by its evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weightloom.engine.errors import PluginError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.judging.evidence import Evidence


class UnfitError(PluginError):
    """Architectures for the model type are installed, and none takes this checkpoint."""


def fitting(model_type: str, offered: Sequence[Architecture], evidence: Evidence) -> tuple[Architecture, ...]:
    """Give those that do not refuse the checkpoint; raises UnfitError, with each reason, where all do.

    Of several, those whose own task it is go before those that do it by request, those that name its class before
    those that name others, and, where all that is known is the model type, those that generate before the others.
    """
    reasons = {architecture: architecture.why_not(evidence) for architecture in offered}
    fine = tuple(architecture for architecture, reason in reasons.items() if reason is None)
    if offered and not fine:
        raise _unfit(model_type, {found: reason for found, reason in reasons.items() if reason is not None}, evidence)
    own = _first(fine, lambda each: each.task == evidence.kind.task)
    named = _first(own, lambda each: not each.class_names or evidence.class_name in each.class_names)
    return named if evidence.kind.task else _first(named, lambda each: each.task == "generate")


def _first(found: tuple[Architecture, ...], wanted: Callable[[Architecture], bool]) -> tuple[Architecture, ...]:
    """Give those that are wanted; all where none is."""
    return tuple(each for each in found if wanted(each)) or found


def _unfit(model_type: str, reasons: dict[Architecture, str], evidence: Evidence) -> UnfitError:
    said = "; ".join(f"{architecture.name}: {reason}" for architecture, reason in reasons.items())
    return UnfitError(
        f"no installed architecture for model type {model_type!r} takes this checkpoint: {said}",
        expected="an architecture for what the checkpoint has",
        hint=_way_out(reasons, evidence),
        field="model_type",
    )


def _way_out(reasons: dict[Architecture, str], evidence: Evidence) -> str:
    if evidence.vision.present:
        return "load it with text_only=True (--text-only) for its text model alone, or install what offers the whole"
    tasks = " or ".join(sorted({each.task for each in reasons} - {"rerank"}))
    asked = f"ask for what there is by name (task= or --task: {tasks}), or " if tasks else ""
    return f"{asked}install a package that offers an architecture for it"
