"""The server: a page and three things that it may ask for, on this machine's own address."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from weightloom.engine.errors import UsageError
from weightloom.runtime.studio.guard import ADDRESS, Guard

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
# A rule file has a MiB at most, and JSON may spell a character in six.
MOST_BYTES = 6 << 20
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """Listens on the loopback address alone; `page` gives the page, `answers` what it asks for, by name."""

    daemon_threads = True
    # Another program must not be able to listen beside it.
    allow_reuse_port = False

    def __init__(self, port: int, page: Callable[[], tuple[str, str]], answers: Mapping[str, Answer]) -> None:
        try:
            super().__init__((ADDRESS, port), Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"cannot listen on port {port}: {error}",
                expected="a free port of 1 to 65535",
                hint="choose another, or leave --port out",
                field="port",
            ) from error
        self.guard = Guard(self.server_address[1])
        self.page = page
        self.answers = answers

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that goes away in the middle is no news."""


class Handler(BaseHTTPRequestHandler):
    """One connection; whoever lacks the token is told nothing."""

    protocol_version = "HTTP/1.1"
    # A client that sends nothing must not keep a thread.
    timeout = 30

    @property
    def _studio(self) -> Server:
        assert isinstance(self.server, Server)
        return self.server

    def do_GET(self) -> None:
        """Give the page."""
        if not self._is_known():
            self._refuse(HTTPStatus.FORBIDDEN)
        elif self._studio.guard.place(self.path):
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            text, policy = self._studio.page()
            headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy}
            self._send(HTTPStatus.OK, text.encode(), headers)

    def do_POST(self) -> None:
        """Answer what the page asks for."""
        if not self._is_known() or not self._studio.guard.trusts(self.headers.get_all("Origin") or []):
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        answer = self._studio.answers.get(self._studio.guard.place(self.path))
        if answer is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        asked = self._asked()
        if asked is not None:
            made = json.dumps({"schema": 1, **answer(asked)}).encode()
            self._send(HTTPStatus.OK, made, {"Content-Type": "application/json"})

    def _is_known(self) -> bool:
        return self._studio.guard.knows(self.path, self.headers.get_all("Host") or [])

    def _asked(self) -> Mapping[str, Any] | None:
        """Read the body, a JSON object; None once a wrong one is refused."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
        elif len(length) > 9 or int(length) > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        elif self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        else:
            found = _json_object(self.rfile.read(int(length)))
            if found is not None:
                return found
            self._refuse(HTTPStatus.BAD_REQUEST)
        return None

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self._send(status, b"", {"Connection": "close"})

    def _send(self, status: HTTPStatus, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """Name the program, and no versions."""
        return "weightloom"

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal quiet."""


def _json_object(data: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
