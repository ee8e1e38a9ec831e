"""Put an Outcome on the terminal: text or JSON, never a control character, never a broken-pipe traceback."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TextIO

from weightloom.runtime.terminal.outcome import Outcome

SCHEMA = 1
# Names in a file may hold escape sequences; a terminal must not obey them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def deliver(outcome: Outcome, *, as_json: bool, quiet: bool) -> int:
    """Print what the outcome says and give its exit code, or that of a disk error where printing fails."""
    try:
        _print(sys.stderr, outcome.complaint)
        _print(sys.stdout, _json(outcome) if as_json else _text(outcome, quiet))
    except OSError as error:
        from weightloom.engine.os_errors import storage_error
        from weightloom.runtime.terminal.failure import failed

        _give_up(sys.stdout)
        return deliver(failed(storage_error("write", Path("standard output"), error)), as_json=False, quiet=True)
    return outcome.code


def _text(outcome: Outcome, quiet: bool) -> str:
    parts = [outcome.text] if quiet else [outcome.text, outcome.remarks]
    return "\n".join(part for part in parts if part)


def visible(text: str) -> str:
    """Show control characters, line breaks apart, as escapes."""
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def _json(outcome: Outcome) -> str:
    """Give the one object; nothing where the command has given its objects already."""
    import json

    return json.dumps({"schema": SCHEMA, **outcome.data}, indent=2) if outcome.data else ""


def put(piece: str) -> bool:
    """Write a piece of an answer at once; False where the reader went away."""
    return sys.stdout is None or _write(sys.stdout, piece)


def _print(stream: TextIO | None, text: str) -> None:
    if stream is not None and text:
        _write(stream, text + "\n")


def _write(stream: TextIO, text: str) -> bool:
    encoding = stream.encoding or "utf-8"
    safe = visible(text).encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(safe)
        stream.flush()
    except BrokenPipeError:
        _give_up(stream)  # the reader went away, as in `| head`
        return False
    return True


def _give_up(stream: TextIO) -> None:
    """Let the rest go nowhere: the interpreter flushes once more at exit, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
