"""Whether a conversion may write where it is asked to."""

from __future__ import annotations

import os
from pathlib import Path

from weightloom.engine.errors import UsageError


def check_target(source: Path, target: Path, overwrite: bool) -> None:
    """Raise UsageError when the target lies in the source's directory or holds it.

    The directory itself may be the target with `overwrite`: the new files are built beside it and put in its
    place at the end, so that the old ones are there to be read until then.
    """
    here, there = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if here == there:
        if not overwrite:
            raise _refused("the target is the source's own directory", "or --overwrite, to replace it", target)
    elif there.is_relative_to(here):
        raise _refused("the target is inside the source's directory, whose files would travel into it", "", target)
    elif here.is_relative_to(there):
        raise _refused("the target holds the source's directory", "", target)


def _refused(seen: str, way: str, target: Path) -> UsageError:
    expected = ", ".join(part for part in ("a directory apart from the source's", way) if part)
    return UsageError(seen, expected=expected, hint="choose another directory", file=target)
