"""Nobody but the page may ask the studio anything, and who may not is told nothing."""

from __future__ import annotations

import json
import socket

import pytest

from tests.runtime.studio.conftest import RIGHT, Asking
from weightloom.engine.errors import UsageError
from weightloom.runtime.studio.guard import Guard
from weightloom.runtime.studio.serving import MOST_BYTES, Server

JSON = {"Content-Type": "application/json"}


def test_the_page_comes_with_the_token(studio: Asking) -> None:
    found = studio.send("GET", studio.place)
    assert found.status == 200 and b"<textarea" in found.body
    policy = found.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy and "unsafe" not in policy
    assert found.headers["Cache-Control"] == "no-store" and found.headers["X-Frame-Options"] == "DENY"
    assert found.headers["Server"] == "weightloom"


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "/wrong/", "//", "/%2e%2e/etc/passwd", "*", "/plan", "/?token"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_said(studio: Asking, method: str, path: str) -> None:
    found = studio.send(method, path, b"{}" if method == "POST" else None, {"Origin": studio.here, **JSON})
    assert (found.status, found.body) == (403, b"")


def test_a_token_but_for_one_sign_is_none(studio: Asking) -> None:
    token = studio.server.guard.token
    for wrong in (token[:-1], f"{token}x", token.swapcase(), ""):
        assert studio.send("GET", f"/{wrong}/").status == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}", ""]
)
def test_another_host_is_refused_whatever_it_knows(studio: Asking, host: str) -> None:
    headers = {"Host": host.format(port=studio.port), "Origin": studio.here, **JSON}
    assert studio.send("GET", studio.place, headers=headers).status == 403
    assert studio.send("POST", f"{studio.place}plan", b"{}", headers).status == 403


def test_two_hosts_are_refused(studio: Asking) -> None:
    with socket.create_connection(("127.0.0.1", studio.port)) as connection:
        hosts = f"Host: 127.0.0.1:{studio.port}\r\nHost: evil.example\r\n"
        connection.sendall(f"GET {studio.place} HTTP/1.1\r\n{hosts}\r\n".encode())
        assert b" 403 " in connection.recv(1000).split(b"\r\n")[0]


def test_localhost_is_this_machine_too(studio: Asking) -> None:
    assert studio.send("GET", studio.place, headers={"Host": f"localhost:{studio.port}"}).status == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
def test_another_origin_may_ask_for_nothing(studio: Asking, origin: str | None) -> None:
    said = {} if origin is None else {"Origin": origin.format(port=studio.port)}
    before = studio.rules.read_text()
    for what in ("plan", "save", "take"):
        body = json.dumps({"text": "other"}).encode()
        found = studio.send("POST", studio.place + what, body, {**JSON, **said})
        assert (found.status, found.body) == (403, b"")
    assert studio.rules.read_text() == before


def test_a_body_has_a_size_and_a_limit(studio: Asking) -> None:
    said = {"Origin": studio.here, **JSON}
    for length, status in ((str(MOST_BYTES + 1), 413), ("9" * 40, 413), ("-1", 411), ("many", 411)):
        with socket.create_connection(("127.0.0.1", studio.port)) as connection:
            lines = [f"POST {studio.place}plan HTTP/1.1", f"Host: 127.0.0.1:{studio.port}", f"Content-Length: {length}"]
            lines += [f"{name}: {value}" for name, value in said.items()]
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
            assert f" {status} ".encode() in connection.recv(1000).split(b"\r\n")[0]
    chunked = studio.send("POST", f"{studio.place}plan", None, {**said, "Transfer-Encoding": "chunked"})
    assert chunked.status == 411


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_a_body_is_a_json_object(studio: Asking, body: bytes) -> None:
    assert studio.send("POST", f"{studio.place}plan", body, {"Origin": studio.here, **JSON}).status == 400


def test_a_form_is_no_request(studio: Asking) -> None:
    said = {"Origin": studio.here, "Content-Type": "text/plain"}
    assert studio.send("POST", f"{studio.place}plan", b"{}", said).status == 415


@pytest.mark.parametrize("place", ["..", "../mine.yaml", "page", "plan/", "data"])
def test_there_are_no_other_places(studio: Asking, place: str) -> None:
    assert studio.send("GET", studio.place + place).status == 404
    assert studio.ask(place).status == 404
    assert studio.send("PUT", studio.place).status == 501


def test_only_this_machine_is_listened_to(studio: Asking) -> None:
    assert studio.server.socket.getsockname() == ("127.0.0.1", studio.port)
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", studio.port), timeout=2):
        pass


def test_a_port_that_is_taken_is_said(studio: Asking) -> None:
    with pytest.raises(UsageError, match="cannot listen on port"):
        Server(studio.port, lambda: ("", ""), {})
    with pytest.raises(UsageError, match="cannot listen on port 70000"):
        Server(70000, lambda: ("", ""), {})


def test_the_port_that_browsers_leave_out_may_be_left_out() -> None:
    usual, other = Guard(80), Guard(8000)
    for host in ("127.0.0.1", "localhost", "localhost:80"):
        assert usual.knows(f"/{usual.token}/", [host]) and usual.trusts([f"http://{host}"])
        assert not other.knows(f"/{other.token}/", [host]) and not other.trusts([f"http://{host}"])
    assert not usual.knows(f"/{usual.token}/", ["evil.example"])


def test_tokens_are_long_and_each_another() -> None:
    one, other = Guard(1), Guard(1)
    assert one.token != other.token and len(one.token) >= 43 and one.token not in repr(one)


def test_what_is_planned_stays_as_it_was(studio: Asking) -> None:
    assert studio.ask("plan", text=RIGHT).data["faults"] == []
