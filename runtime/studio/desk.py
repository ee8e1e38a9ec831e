"""The desk: the checkpoint that rules are tried on, the file that they are written in, and answers for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from weightloom.engine.errors import WeightloomError
from weightloom.engine.kept_threads import on_kept_thread
from weightloom.runtime.authoring.replan import Replanned, replan
from weightloom.runtime.authoring.subject import Subject
from weightloom.runtime.picture.drawing import draw
from weightloom.runtime.picture.page import picture_data
from weightloom.runtime.studio.rule_file import RuleFile, encoded, read_rule_file, save
from weightloom.runtime.studio.starting import starting_text

T = TypeVar("T")


class Desk:
    """Answers requests one after the other, on a thread that is kept: MLX must not see one for each request."""

    def __init__(self, subject: Subject, file: RuleFile, title: str) -> None:
        self._subject = subject
        self._file = file
        self._title = title
        self._turn = Lock()

    def close(self) -> None:
        """Answer nothing more; what was begun is ended."""
        self._turn.acquire()

    def start(self) -> dict[str, Any]:
        """Give what the page shows first: the file's text, or one to begin with, and what becomes of it."""
        text = self._file.text()
        shown = starting_text(self._subject) if text is None else text
        return self._alone(lambda: {**self._state(), "text": shown, **self._planned(shown)})

    def plan(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Plan by a text: its picture, or what is wrong with it."""
        text = str(asked.get("text", ""))
        return self._alone(lambda: self._planned(text))

    def save(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Save a text, under a path where there is none yet; on a conflict the text on disk is given too."""
        text, path = str(asked.get("text", "")), str(asked.get("path") or "")
        return self._alone(lambda: self._saved(text, path))

    def take(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Take the text that is on disk, whatever was read before."""
        return self._alone(self._taken)

    def _alone(self, call: Callable[[], T]) -> T:
        with self._turn:
            return on_kept_thread(call).result()

    def _state(self) -> dict[str, Any]:
        return {"file": self._file.name, "path": None if self._file.path is None else str(self._file.path)}

    def _planned(self, text: str) -> dict[str, Any]:
        found = replan(text.encode(errors="replace"), self._file.name, self._subject)
        marks = {
            "faults": [fault.to_json() for fault in found.faults],
            "misfits": [fault.to_json() for fault in found.misfits],
            "warnings": [fault.to_json() for fault in found.warnings],
        }
        return {**marks, "layout": found.layout, "picture": self._drawn(found)}

    def _drawn(self, found: Replanned) -> dict[str, Any] | None:
        """Draw the plan; None where there is none."""
        if found.plan is None:
            return None
        subject, plan = self._subject, found.plan
        wanted = subject.wanted(plan)
        facts = {
            "rules": f"{self._file.name}, then those that ship",
            "layout": subject.layout,
            "target": subject.target,
        }
        return picture_data(draw(plan, self._title, facts=facts, wanted=wanted))

    def _saved(self, text: str, path: str) -> dict[str, Any]:
        try:
            file = self._file
            if path and (file.path is None or Path(path) != file.path):
                file = replace(read_rule_file(Path(path)), on_disk=None)
            self._file = save(file, encoded(text))
        except WeightloomError as error:
            return {**self._state(), "saved": False, "error": error.to_json()}
        return {**self._state(), "saved": True}

    def _taken(self) -> dict[str, Any]:
        try:
            self._file = read_rule_file(self._file.path)
            text = self._file.text() or ""
        except WeightloomError as error:
            return {**self._state(), "error": error.to_json()}
        return {**self._state(), "text": text, "saved": True, **self._planned(text)}
