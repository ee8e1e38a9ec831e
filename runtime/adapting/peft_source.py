"""What PEFT wrote, fitted to a model: names and scales by the config, and by the shapes on either side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weightloom.engine import Checkpoint, RuleSet, TensorSpec
from weightloom.rules import load_rules
from weightloom.runtime.adapting.adapter_config import AdapterConfig
from weightloom.runtime.adapting.bare_parameter import Bare, published
from weightloom.runtime.adapting.bare_parameters import bare_parameters
from weightloom.runtime.adapting.bare_rules import bare_rules
from weightloom.runtime.adapting.fitted import Fitted
from weightloom.runtime.adapting.peft_factors import Factor, Ranked, factors_in, scales
from weightloom.runtime.adapting.peft_names import (
    magnitude_rules,
    turned,
    turned_notes,
    turned_rules,
    without_magnitudes,
)


@dataclass(frozen=True)
class PeftAdapter:
    """An adapter in PEFT's format: its config and its weights, of which the headers are looked at."""

    config: AdapterConfig
    checkpoint: Checkpoint

    def fit(self, params: Mapping[str, TensorSpec], base: str) -> Fitted:
        """Fit it to a model's parameters; `base` is the prefix of the base model.

        Raises PlanError for ranks that are not the config's, and for shapes that say nothing or fit nothing.
        """
        config, factors = self.config, factors_in(self.checkpoint)
        bare = bare_parameters(factors, config.target_parameters or (), params, base, config.peft_version)
        of_modules = _others(factors, bare)
        stored_turned = turned(of_modules, params, base) if config.fan_in_fan_out else ()
        ranked = (*_of_bare(bare), *(Ranked(factor, factor.module) for factor in of_modules))
        names = (*self._magnitudes(factors, stored_turned), *bare_rules(bare), *turned_rules(stored_turned))
        found = scales(ranked, config, str(self.checkpoint.files[0]))
        return Fitted(
            RuleSet((*names, *load_rules("peft"))), found, config.use_dora, self._notes(ranked, stored_turned)
        )

    def _notes(self, ranked: Sequence[Ranked], stored_turned: Sequence[Factor]) -> tuple[str, ...]:
        """Say what was set aside of the config: fields that are not known, and names and patterns of nothing here.

        And what the config alone decided.
        """
        config, changed = self.config, tuple(dict.fromkeys(each.changes for each in ranked))
        lacking = (*config.untargeted(changed), *config.unsaved(self.checkpoint.tensors))
        return (*config.notes, *config.unmatched(changed), *lacking, *turned_notes(stored_turned))

    def _magnitudes(self, factors: Sequence[Factor], stored_turned: Sequence[Factor]) -> RuleSet:
        if not self.config.use_dora:
            return without_magnitudes()
        embeds = tuple(factor for factor in factors if factor.embeds)
        return magnitude_rules(self.checkpoint, (*embeds, *stored_turned))


def _others(factors: Sequence[Factor], bare: Sequence[Bare]) -> tuple[Factor, ...]:
    taken = {factor.name for each in bare for factor in (each.a, each.b)}
    return tuple(factor for factor in factors if factor.name not in taken)


def _of_bare(bare: Sequence[Bare]) -> Iterator[Ranked]:
    for each in bare:
        for factor in (each.a, each.b):
            changed = f"{published(factor.module)}.{each.parameter.rpartition('.')[2]}"
            yield Ranked(factor, changed, each.experts)
