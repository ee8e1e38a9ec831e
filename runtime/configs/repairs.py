"""What of a config was read otherwise than it is written, for a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weightloom.plugins.configs.repair import Repair
from weightloom.runtime.configs.config import Config

if TYPE_CHECKING:
    from weightloom.engine.plan import Plan
    from weightloom.plugins.architecture import Architecture


def repaired_fields(architecture: Architecture | None, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a config as an architecture reads it; without one, as it is."""
    return values if architecture is None else architecture.repaired(values).content


def known_repairs(config: Config | None) -> tuple[str, ...]:
    """Give a line for each repair of a config; of its fields where an installed architecture says what they want."""
    if config is None:
        return ()
    from weightloom.runtime.configs.installed import installed_architecture

    found = installed_architecture(config.values)
    return repair_lines(config, () if found is None else found.repaired(config.values).repairs)


def repair_lines(config: Config, repairs: Iterable[Repair] = ()) -> tuple[str, ...]:
    """Give a line for each repair of a config's text, and for each of its fields."""
    return tuple(f"{config.path.name}: {each}" for each in (*config.repairs, *repairs))


def with_repairs(plan: Plan, config: Config, repairs: Iterable[Repair] = ()) -> Plan:
    """Give the plan with the repairs of the config in its report."""
    return replace(plan, report=replace(plan.report, repaired=repair_lines(config, repairs)))
