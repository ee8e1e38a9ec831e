"""What a config says of modules by name, under the names of the files that are written.

Overrides of a quantization are keyed by modules, and lists say which modules stay dense. Both go the way that the
tensors go, rule by rule; what is no module of the files (a regular expression, a class) stays as it is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Plan
from weightloom.engine.quantizing.tracing import origins
from weightloom.runtime.configs.config_text import repaired
from weightloom.runtime.preparing.quantized_settings import SECTIONS, module_of

_LISTS = ("ignore", "modules_to_not_convert", "exclude_modules")

Names = Mapping[str, Sequence[str]]


def modules_made(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Give, by the path of each module among a plan's sources, the paths that its tensors have among the targets."""
    found: dict[str, dict[str, None]] = {}
    for group in plan.groups:
        for target, slots in zip(group.targets, origins(group.program), strict=False):
            for slot in sorted(slots):
                if slot < len(group.sources):
                    found.setdefault(module_of(group.sources[slot]), {})[module_of(target)] = None
    return {path: tuple(targets) for path, targets in found.items()}


def through(first: Names, second: Plan) -> dict[str, tuple[str, ...]]:
    """Give names through a plan that is read backwards: from its targets, which `first` leads to, to its sources."""
    written: dict[str, dict[str, None]] = {}
    for source, targets in modules_made(second).items():
        for target in targets:
            written.setdefault(target, {})[source] = None
    return {
        path: tuple(name for target in targets for name in written.get(target, ())) for path, targets in first.items()
    }


def with_names(raw: bytes, names: Names) -> bytes:
    """Give a config with its settings of modules under other names; raises PlanError for two that differ on one."""
    before: dict[str, Any] = json.loads(repaired(raw.decode()).readable)
    after = {
        name: _section(value, names) if name in SECTIONS and isinstance(value, Mapping) else value
        for name, value in before.items()
    }
    return raw if after == before else (json.dumps(after, indent=2, ensure_ascii=False) + "\n").encode()


def _section(section: Mapping[str, Any], names: Names) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in section.items():
        if name in _LISTS and isinstance(value, list):
            found[name] = list(dict.fromkeys(_renamed(value, names)))
        elif isinstance(value, Mapping | bool) and names.get(name):
            for other in names[name]:
                if found.setdefault(other, value) != value:
                    raise PlanError(
                        f"the config says two things of what becomes {other}: {found[other]} and {value}",
                        expected="one setting for all that go into one module",
                        field=f"quantization.{name}",
                    )
        else:
            found[name] = value
    return found


def _renamed(values: Iterable[object], names: Names) -> Iterable[object]:
    for value in values:
        yield from names.get(value) or (value,) if isinstance(value, str) else (value,)
