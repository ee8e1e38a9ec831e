"""A job while it is compared: the checkpoint, what either side makes of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.oracle import peer
from tests.oracle.all_keys.arrays import dtype_of, specs_of, state_of
from tests.oracle.all_keys.build import Built
from tests.oracle.all_keys.jobs import Job
from tests.oracle.all_keys.precision import MIXED, PREPARED, narrow_matrices
from tests.oracle.all_keys.published import publish
from weightloom.engine import Checkpoint, ModuleNode, Plan, PrefixChange, RuleSet, build_plan, scoped_rules

if TYPE_CHECKING:
    import torch

# Classes whose own loading fails where it is asked what it left over.
SAYS_NOTHING = ("JevForDecision",)
BOTH_FORMS = "read with and without a prefix"


@dataclass(frozen=True)
class Trial:
    """A job while it is compared; what several steps need is made once."""

    job: Job
    built: Built
    directory: Path
    dtype: str

    @cached_property
    def source(self) -> Path:
        """A directory with the checkpoint in its published layout, written by the reference implementation."""
        model, source = self.built.model, self.directory / "source"
        PREPARED[self.dtype](model)
        with peer.quiet():
            model.save_pretrained(source)
        publish(self.job.key, source)
        if self.dtype == MIXED:
            narrow_matrices(source)
        return source

    @cached_property
    def config(self) -> dict[str, Any]:
        """The config beside it."""
        found: dict[str, Any] = json.loads((self.source / "config.json").read_text())
        return found

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """Its headers."""
        return Checkpoint.open(self.source)

    @cached_property
    def state(self) -> dict[str, torch.Tensor]:
        """What the reference implementation loads from it."""
        return state_of(self.theirs[0])

    @cached_property
    def theirs(self) -> tuple[Any, dict[str, Any]]:
        """The model that the reference implementation loads from it, and what it says of that."""
        return self.loaded(self.source)

    @cached_property
    def nodes(self) -> tuple[ModuleNode, ...]:
        """The model's tree."""
        return peer.nodes_of(self.built.model)

    @cached_property
    def rules(self) -> RuleSet:
        """The rules that ship, scoped to the model's tree."""
        from weightloom.rules import registry

        return scoped_rules(self.nodes, registry, self.built.model.base_model_prefix)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else there is to know."""
        return (BOTH_FORMS,) if self.prefixes else ()

    @property
    def prefixes(self) -> tuple[PrefixChange, ...]:
        """The changes of a prefix that act on the whole model's names."""
        active = (rule for rule in self.rules if isinstance(rule, PrefixChange) and rule.applies(self.config, {}))
        return tuple(rule for rule in active if rule.scope is None)

    @property
    def dtypes_changed(self) -> tuple[str, ...]:
        """Parameters that the reference implementation gives another dtype than the file's."""
        state, params = self.state, self.plan.params
        return tuple(name for name in sorted({*state} & {*params}) if dtype_of(state[name]) != params[name].dtype)

    @cached_property
    def plan(self) -> Plan:
        """Our plan for the checkpoint."""
        return build_plan(self.checkpoint, self.rules, specs_of(state_of(self.built.model)), config=self.config)

    def loaded(self, directory: Path) -> tuple[Any, dict[str, Any]]:
        """Load a directory by the reference implementation, in the dtype of its files: (model, what it says)."""
        config = self.built.config_class.from_pretrained(directory)
        load = partial(self.built.model_class.from_pretrained, directory, config=config, local_files_only=True)
        with peer.quiet():
            if self.built.model_class.__name__ in SAYS_NOTHING:
                return load(dtype="auto"), {}
            found: tuple[Any, dict[str, Any]] = load(output_loading_info=True, dtype="auto")
        return found
