"""Checkpoints to propose rules for: what each shipped family's rules, run backwards, write in each of its layouts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.families.all import FAMILIES
from tests.families.family import Family
from tests.oracle.real_configs import QUANTIZED
from weightloom.engine import Plan, RuleSet, TensorSpec, save_plan
from weightloom.engine.errors import ConfigError, NotInvertible, PluginError, RuleError
from weightloom.plugins import PluginManager, param_specs
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.modules.otherwise import known_otherwise
from weightloom.rules import registry
from weightloom.runtime.choosing.rule_choice import led_on, model_rules
from weightloom.runtime.choosing.text_half import text_half
from weightloom.runtime.configs.config import read_config

# So wide that no two sizes are alike by chance, where a family's other sizes leave it so.
WIDE = {"vocab_size": 1000, "hidden_size": 96, "intermediate_size": 176}


@dataclass(frozen=True)
class Case:
    """A checkpoint in a layout: its tensors, the canonical parameters, and the plan that says what is right.

    `known` is what its parameters may be otherwise in other layouts.
    """

    family: str
    layout: str
    sizes: str
    config: Mapping[str, Any]
    architecture: Architecture
    known: Mapping[str, str]
    params: Mapping[str, TensorSpec]
    canonical: Mapping[str, TensorSpec]
    truth: Plan
    base: str

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    @property
    def tensors(self) -> Mapping[str, TensorSpec]:
        """What is on disk."""
        return self.truth.sources


def small_cases(families: Iterable[Family] = FAMILIES) -> Iterator[Case]:
    """Give the cases of the families as the tests know them, wider where that can be."""
    manager = PluginManager()
    for family in families:
        for case in family.cases:
            config = family.config(case)
            wider = {key: size for key, size in WIDE.items() if config.get(key) == family.sizes.get(key)}
            for sizes in ({**config, **wider}, config):
                found = list(_cases(family.name, case.name, _architecture(manager, config), sizes))
                yield from found
                if found:
                    break


def real_cases(configs: Iterable[Path]) -> Iterator[Case]:
    """Give the cases of published configs, of wholes whose text model alone is served that."""
    manager = PluginManager()
    for path in configs:
        config = read_config(path)
        name = path.name.removesuffix("_config.json")
        content = {key: value for key, value in config.values.items() if key not in QUANTIZED}
        try:
            found = manager.architecture(str(config.model_type))
        except PluginError:
            try:
                half = text_half(content, ())
                found, content = manager.architecture(half.model_type), dict(half.config)
            except (ConfigError, PluginError):
                continue
        yield from _cases(found.name, name, found, content)


def _architecture(manager: PluginManager, config: Mapping[str, Any]) -> Architecture:
    model_type, named = str(config["model_type"]), next(iter(config.get("architectures") or ()), None)
    of_class = [each for each in manager.architectures(model_type) if named in each.class_names]
    return of_class[0] if len(of_class) == 1 else manager.architecture(model_type)


def _cases(family: str, sizes: str, found: Architecture, content: Mapping[str, Any]) -> Iterator[Case]:
    model_type = str(content["model_type"])
    try:
        config = found.repaired(content).content
        module = found.build(found.read_config(config))
        params, known = param_specs(module), known_otherwise(module)
        own = led_on(found, RuleSet(), config)
        canonical = save_plan(own, params, config).sources
    except (ConfigError, NotInvertible):
        return
    for layout in registry.layouts(model_type) if model_type in registry else ():
        try:
            truth = save_plan(model_rules(found, config, layout), params, config)
        except (NotInvertible, RuleError):
            continue
        yield Case(family, layout, sizes, config, found, known, params, canonical, truth, found.base_model_prefix)
