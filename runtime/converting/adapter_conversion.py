"""convert_adapter: an adapter in another format, disk to disk; of its base headers are read."""

from __future__ import annotations

from pathlib import Path

from weightloom.engine.errors import UsageError
from weightloom.runtime.adapting.writing import AdapterWritten, Form, base_of, write_converted
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.adapter_base import base_for_adapters
from weightloom.runtime.inspecting.reading import planned


def convert_adapter(
    source: str | Path,
    target: str | Path,
    form: Form = "original",
    *,
    base: str | Path | None = None,
    overwrite: bool = False,
    wish: Wish | None = None,
) -> AdapterWritten:
    """Write an adapter in the format "peft" or "mlx", or as it was read.

    `base` is the model that it is for, by default the one that its config names; `wish` says by which rules that is
    read. Raises PlanError listing all that does not fit or that the format has no place for, NotInvertible where the
    base's rules have no way back, UsageError without a base or for a target that is not empty, ConfigError,
    CheckpointError and StorageError as reading and writing do.
    """
    with planned(str(_base(base, Path(source))), wish or Wish()) as found:
        found.plan.check()
        known = found.target.architecture
        task = None if known is None else known.task
        return write_converted(Path(source), base_for_adapters(found), task, Path(target), form, overwrite)


def _base(given: str | Path | None, source: Path) -> str | Path:
    if given is not None:
        return given
    named = base_of(source)
    if named is None or not Path(named).exists():
        raise UsageError(
            f"the adapter's config names {named or 'no base'}" + (", which is not here" if named else ""),
            expected="the model that it is for, whose rules give the names",
            hint="give its path with --base",
            file=source,
            field="base",
        )
    return named
