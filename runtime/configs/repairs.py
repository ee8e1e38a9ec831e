"""What of a config was read otherwise than it is written, for a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from weightloom.engine.plan import Plan
from weightloom.plugins.repair import Repair, Repaired, repaired_numbers
from weightloom.runtime.configs.config import Config
from weightloom.runtime.configs.installed import installed_architecture


def repaired_fields(values: Mapping[str, Any]) -> Repaired:
    """Repair the numbers of a config that an installed architecture reads; where there is none it stays as it is."""
    found = installed_architecture(values)
    return Repaired(values) if found is None or found.fields is None else repaired_numbers(found.fields, values)


def repair_lines(config: Config, repairs: Iterable[Repair] = ()) -> tuple[str, ...]:
    """Give a line for each repair of a config's text, and for each of its fields."""
    return tuple(f"{config.path.name}: {each}" for each in (*config.repairs, *repairs))


def with_repairs(plan: Plan, config: Config, repairs: Iterable[Repair] = ()) -> Plan:
    """Give the plan with the repairs of the config in its report."""
    return replace(plan, report=replace(plan.report, repaired=repair_lines(config, repairs)))
