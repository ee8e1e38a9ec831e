"""A proposal for a checkpoint and an architecture: canonical names are what the rules lead to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from weightloom.engine import RuleSet, TensorSpec, save_plan
from weightloom.engine.errors import UsageError
from weightloom.rules.proposing.accompanying import accompanied
from weightloom.rules.proposing.proposal import Proposal
from weightloom.rules.proposing.propose import propose
from weightloom.runtime.authoring.parameters import Parameters
from weightloom.runtime.authoring.plain_view import plain_view
from weightloom.runtime.authoring.subject import Subject
from weightloom.runtime.choosing.rule_choice import led_on


def proposed(subject: Subject) -> Proposal:
    """Propose rules for the subject, whatever rules there are for it already.

    Where names settle what the config does not say of the module, those on disk do at first, then those that were
    proposed. Raises UsageError where nothing says whose parameters are wanted.
    """
    if subject.parameters is None:
        raise UsageError(
            f"nothing says whose parameters these are ({subject.target})",
            expected="a checkpoint whose model type an installed architecture serves, or the name of one",
            hint="say --arch NAME; `weightloom arch` lists them",
            field="--arch",
        )
    view = plain_view(subject.checkpoint, subject.config)
    tensors = view.checkpoint.logical
    found = _by_names(subject, subject.parameters, tensors, tensors)
    if subject.parameters.architecture.adapt is not None:
        names = [name for link in found.links for target in link.targets for name in target.names]
        found = _by_names(subject, subject.parameters, tensors, names)
    return replace(found, rules=accompanied(found.rules)) if view.mlx else found


def _by_names(
    subject: Subject, parameters: Parameters, tensors: Mapping[str, TensorSpec], names: Collection[str]
) -> Proposal:
    built = parameters.built(lambda: names)
    own = led_on(parameters.architecture, RuleSet(), subject.config)
    canonical = save_plan(own, built.specs, subject.config).sources
    return propose(tensors, canonical, subject.config, built.otherwise)
