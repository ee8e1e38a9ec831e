"""Any exception as an Outcome: one block of text, the same as JSON, and the exit code."""

from __future__ import annotations

from pathlib import Path

from weightloom.engine.errors import WeightloomError
from weightloom.runtime.terminal.outcome import BUG, INTERRUPTED, TERMINATED, Outcome
from weightloom.runtime.terminal.termination import Terminated


def failed(error: BaseException, debug: bool = False) -> Outcome:
    """Say what went wrong; with `debug` the traceback is added."""
    known = _known(error)
    if known is not None:
        outcome = Outcome(known.exit_code, {"error": known.to_json()}, complaint=f"error: {known}")
    elif isinstance(error, Terminated):
        outcome = Outcome(TERMINATED, {"error": _facts("Terminated", "terminated")}, complaint="terminated")
    elif isinstance(error, KeyboardInterrupt):
        outcome = Outcome(INTERRUPTED, {"error": _facts("Interrupted", "interrupted")}, complaint="interrupted")
    else:
        outcome = _bug(error)
    return _with_traceback(outcome, error) if debug else outcome


def _known(error: BaseException) -> WeightloomError | None:
    if isinstance(error, WeightloomError):
        return error
    if isinstance(error, OSError):
        from weightloom.engine.os_errors import storage_error

        return storage_error("use", Path(str(error.filename or "a file")), error)
    return None


def _bug(error: BaseException) -> Outcome:
    seen = f"{type(error).__name__}: {error}"
    text = f"error: {seen}\n  this is a bug in weightloom\n  to do: run it again with --debug and report the traceback"
    return Outcome(BUG, {"error": _facts("Bug", seen)}, complaint=text)


def _facts(kind: str, seen: str) -> dict[str, str | None]:
    return {**WeightloomError(seen).to_json(), "kind": kind}


def _with_traceback(outcome: Outcome, error: BaseException) -> Outcome:
    from dataclasses import replace
    from traceback import format_exception

    return replace(outcome, complaint="".join(format_exception(error)) + outcome.complaint)
