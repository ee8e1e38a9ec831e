"""A studio in this process: its server runs on a thread, and is asked as a browser would ask it, or anyone else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.cases.fixtures import t0
from tests.runtime.support import checkpoint
from weightloom.runtime.authoring.subject import open_subject
from weightloom.runtime.studio.desk import Desk
from weightloom.runtime.studio.page import studio_page
from weightloom.runtime.studio.rule_file import read_rule_file
from weightloom.runtime.studio.serving import Server

HEAD = "schema: 1\nfamily: mine\napplies_to: {model_types: [mine]}\nlayouts:\n  hf:\n    rules:\n"
RIGHT = HEAD + "      - rename: {from: '^net\\.', to: 'model.'}\n"
WRONG = HEAD + "      - renam: {from: '^net\\.', to: 'model.'}\n"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass(frozen=True)
class Asking:
    """Sends requests to a server, each with what it is told to say."""

    server: Server
    rules: Path

    @property
    def port(self) -> int:
        return self.server.guard.port

    @property
    def here(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def place(self) -> str:
        return f"/{self.server.guard.token}/"

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def ask(self, what: str, **asked: object) -> Answer:
        """Ask as the page does."""
        headers = {"Origin": self.here, "Content-Type": "application/json"}
        return self.send("POST", self.place + what, json.dumps(asked).encode(), headers)


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Asking]:
    (tmp_path / "model").mkdir()
    arrays = {name.replace("model.", "net.", 1): array for name, array in t0().items()}
    rules = tmp_path / "mine.yaml"
    rules.write_text(RIGHT)
    with open_subject(checkpoint(tmp_path / "model", arrays)) as subject:
        desk = Desk(subject, read_rule_file(rules), "model")
        answers = {"plan": desk.plan, "save": desk.save, "take": desk.take}
        with Server(0, lambda: studio_page(desk.start()), answers) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            try:
                yield Asking(server, rules)
            finally:
                server.shutdown()
                thread.join()
                desk.close()
