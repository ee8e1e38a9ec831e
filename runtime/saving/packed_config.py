"""config.json for a checkpoint of which some packed modules got more bits, or were unpacked.

Readers take a module without scales for a plain one (mlx-lm, and `load` here); what has bits of its own has an entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from weightloom.engine.plan import Plan
from weightloom.engine.quantizing.changing import PackedWider
from weightloom.engine.saving.save import plan_targets
from weightloom.runtime.configs.config_text import repaired

_SECTIONS = ("quantization", "quantization_config")
_SCALES = ".scales"


def with_packing(raw: bytes, plan: Plan) -> bytes:
    """Give the config with an entry for each module that a plan packs in more bits; no claim where none is packed."""
    text = repaired(raw.decode()).readable
    before: dict[str, Any] = json.loads(text)
    widened, any_packed = dict(_widened(plan)), any(spec.dtype == "U32" for spec in plan_targets(plan).params.values())
    after = {name: value for name, value in before.items() if any_packed or not _claims(name, value)}
    after |= {
        name: {**value, **widened} for name, value in after.items() if name in _SECTIONS and isinstance(value, Mapping)
    }
    return raw if after == before else (json.dumps(after, indent=2, ensure_ascii=False) + "\n").encode()


def _widened(plan: Plan) -> Iterator[tuple[str, dict[str, int]]]:
    """Give by module, as the file names it, what the config is to say of it."""
    for group in plan.groups:
        for step in group.program.moves:
            if isinstance(step, PackedWider):
                said = {"group_size": step.wider.group_size, "bits": step.wider.bits}
                yield from ((name.removesuffix(_SCALES), said) for name in group.targets if name.endswith(_SCALES))


def _claims(name: str, value: object) -> bool:
    return name in _SECTIONS and isinstance(value, Mapping) and "bits" in value
