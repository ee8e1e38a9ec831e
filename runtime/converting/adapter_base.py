"""A checkpoint that was opened and planned, as the base of adapters; and adapters verified on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightloom.runtime.adapting.adapter_plan import plan_on, refuse_unless_taken
from weightloom.runtime.adapting.adapter_source import open_adapter
from weightloom.runtime.adapting.fusing import Base
from weightloom.runtime.adapting.packed_forms import as_unpacked, packed_forms
from weightloom.runtime.adapting.wish import Weighted, check_directories
from weightloom.runtime.choosing.choice import only_shipped
from weightloom.runtime.converting.verification import Bar, Verification, verify
from weightloom.runtime.inspecting.reading import Planned


@dataclass(frozen=True, slots=True)
class AdapterVerified:
    """An adapter that fits: how many parameters it changes and replaces, and whether its files come back."""

    path: Path
    scale: float
    changes: int
    replaced: int
    result: Verification

    def to_json(self) -> dict[str, Any]:
        """Give every field as JSON values."""
        about = {"path": str(self.path), "scale": self.scale, "changes": self.changes, "replaced": self.replaced}
        return {**about, **self.result.to_json()}


def base_for_adapters(found: Planned) -> Base:
    """Give what adapters are held against: the plan, the config, and the rules of each layout."""
    return Base(found.plan, only_shipped(found.choice).rules_in, found.config.values if found.config else {})


def verify_adapters(pairs: tuple[Weighted, ...], found: Planned, folder: Path, bar: Bar) -> Iterator[AdapterVerified]:
    """Hold each adapter against the base, and write it below `folder` and compare it with its own files.

    Raises UsageError for a directory that is not there, or where the architecture takes none; PlanError listing all
    that does not fit.
    """
    check_directories([path for path, _ in pairs])
    if pairs and found.target.architecture is not None:
        refuse_unless_taken(found.target.architecture)
    base = base_for_adapters(found)
    for number, (path, scale) in enumerate(pairs):
        source = open_adapter(path)
        with closing(source.checkpoint):
            params = as_unpacked(base.plan.params, packed_forms(base.plan, base.config))
            fitted = plan_on(source, base.rules(source.layout), params, base.config)
            result = verify(fitted.plan, folder / str(number), bar)
        yield AdapterVerified(path, scale, len(fitted.changes), len(fitted.replaced), result)
