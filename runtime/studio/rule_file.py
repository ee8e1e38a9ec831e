"""The rule file that is being written: its text as it was last read, and a save that loses nobody's work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.disk.single_file import check_ending, write_single
from weightloom.engine.errors import RuleError, UsageError
from weightloom.engine.os_errors import storage_error
from weightloom.rules.loader import RULE_FILES
from weightloom.rules.parse import read_bytes


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A rule file's path, None while it has none, and what was on disk when it was last read or saved."""

    path: Path | None
    on_disk: bytes | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return "new rules" if self.path is None else str(self.path)

    def text(self) -> str | None:
        """Give what was on disk; None where there was nothing. Raises RuleError for bytes that are no text."""
        try:
            return None if self.on_disk is None else self.on_disk.decode()
        except UnicodeDecodeError as error:
            raise RuleError(f"not text: {error}", expected="a rule file in UTF-8", file=self.path) from error


def read_rule_file(path: Path | None) -> RuleFile:
    """Read a rule file; one that is not there yet is made by the first save. Raises StorageError, UsageError."""
    if path is None:
        return RuleFile(None)
    check_ending(path, *RULE_FILES)
    return RuleFile(path, read_bytes(path) if _is_there(path) else None)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise storage_error("look at", path, error) from error


def encoded(text: str) -> bytes:
    """Give a text's bytes; raises RuleError for half a surrogate pair, which no file can have."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RuleError(
            f"character {error.start + 1} is half a surrogate pair",
            expected="text that UTF-8 can have",
            hint="delete the character",
        ) from error


def save(file: RuleFile, data: bytes) -> RuleFile:
    """Write the file, unless something else was written in the meantime.

    Raises UsageError where the file is not as it was when it was read, or has no path; StorageError as writing does.
    """
    if file.path is None:
        raise UsageError("the rules have no file yet", expected="a path to save them at")
    if read_rule_file(file.path).on_disk != file.on_disk:
        what = "was changed on disk" if file.on_disk is not None else "is there already"
        raise UsageError(
            f"the file {what}; nothing was written",
            expected="the file as it was when it was read",
            hint="take its text, or save under another name",
            file=file.path,
        )
    write_single(file.path, data, overwrite=file.on_disk is not None)
    return RuleFile(file.path, data)
