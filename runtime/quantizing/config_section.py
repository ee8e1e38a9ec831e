"""What a config says of quantized modules, as mlx-lm reads it: one setting for all, and each other one by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from weightloom.engine.errors import PlanError
from weightloom.engine.plan import Plan
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.quantizing.recipe import usual
from weightloom.engine.quantizing.tracing import packings
from weightloom.runtime.configs.config_text import repaired
from weightloom.runtime.preparing.quantized_settings import SECTIONS, paths_in_files

_SCALES = (".scales", "_scales")


def packed_modules(plan: Plan) -> dict[str, Quantization]:
    """Give the modules that a plan packs, by the paths that its targets have.

    Raises PlanError where modules that are packed in two ways go into one tensor.
    """
    return dict(_packed(plan))


def _packed(plan: Plan) -> Iterator[tuple[str, Quantization]]:
    for group in plan.groups:
        for name, hows in zip(group.targets, packings(group.program), strict=False):
            end = next((end for end in _SCALES if name.endswith(end)), None)
            if end is None or not hows:
                continue
            if len(hows) > 1:
                raise PlanError(
                    f"{name} would be made of {' and '.join(sorted(map(str, hows)))}",
                    expected="one quantization for all that go together in this layout",
                    tensor=name,
                )
            yield name.removesuffix(end), next(iter(hows))


def written_names(modules: Mapping[str, Quantization], plan: Plan) -> dict[str, Quantization]:
    """Give modules of the model by the paths that they have in the files of `plan`, which leads from there to it."""
    names = paths_in_files(plan)
    return {name: how for path, how in modules.items() for name in names.get(path, ())}


def section_of(modules: Mapping[str, Quantization]) -> dict[str, Any]:
    """Give the section: what most modules have, and what each other one has, by path; {} without modules."""
    if not modules:
        return {}
    most = usual(modules.values())
    others = {path: _setting(how) for path, how in sorted(modules.items()) if how != most}
    return {**_setting(most), **others}


def with_quantization(raw: bytes, section: Mapping[str, Any]) -> bytes:
    """Give a config that says this of quantized modules and nothing else; an empty section leaves no trace.

    mlx-lm writes the section twice, under both names that readers look for.
    """
    before: dict[str, Any] = json.loads(repaired(raw.decode()).readable)
    after = _without(before) | (dict.fromkeys(SECTIONS, section) if section else {})
    return raw if after == before else (json.dumps(after, indent=2, ensure_ascii=False) + "\n").encode()


def _without(config: Mapping[str, Any]) -> dict[str, Any]:
    """Leave the sections out, those of sub-models too."""
    return {
        name: _without(value) if name.endswith("_config") and isinstance(value, Mapping) else value
        for name, value in config.items()
        if name not in SECTIONS
    }


def _setting(how: Quantization) -> dict[str, Any]:
    return {"group_size": how.group_size, "bits": how.bits, "mode": how.mode}
