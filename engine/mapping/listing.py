"""Entries of a list of modules, as configs have them: a path, a pattern behind `re:`, or one with `*` and `?`."""

from __future__ import annotations

from fnmatch import fnmatchcase

import regex

from weightloom.engine.errors import ConfigError

PATTERN = "re:"
_SECONDS = 1.0


def is_path(entry: str) -> bool:
    """Say whether an entry is a path, and neither a pattern nor the name of a class."""
    return not entry.startswith(PATTERN) and not any(sign in entry for sign in "*?[")


def covers(entry: str, module: str) -> bool:
    """Say whether an entry means a module: itself, one that it is inside of, or one that fits its pattern.

    A pattern is matched from the start of the name. Raises ConfigError for one that cannot be, or takes too long.
    """
    if entry.startswith(PATTERN):
        try:
            return regex.match(entry.removeprefix(PATTERN), module, timeout=_SECONDS) is not None
        except (regex.error, TimeoutError) as error:
            raise ConfigError(f"{entry!r} cannot be used as a pattern: {error}", expected="a pattern") from error
    if not is_path(entry):
        return fnmatchcase(module, entry)
    return module == entry or module.startswith(f"{entry}.")
