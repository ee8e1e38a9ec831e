"""Which of the architectures that are offered for a model type a checkpoint is for, by its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from weightloom.engine.errors import PluginError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.evidence import Evidence


def fitting(model_type: str, offered: Sequence[Architecture], evidence: Evidence) -> tuple[Architecture, ...]:
    """Give those that do not refuse the checkpoint; raises PluginError, with each reason, where all do."""
    reasons = {architecture: architecture.why_not(evidence) for architecture in offered}
    fine = tuple(architecture for architecture, reason in reasons.items() if reason is None)
    if offered and not fine:
        said = "; ".join(f"{architecture.name}: {reason}" for architecture, reason in reasons.items())
        raise PluginError(
            f"no installed architecture for model type {model_type!r} takes this checkpoint: {said}",
            expected="an architecture for what the checkpoint has",
            hint="load it with text_only=True for its text model alone, or install a package that offers the whole",
            field="model_type",
        )
    return fine
