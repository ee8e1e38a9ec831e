"""The command: it prints where the page is, serves it, and ends when it is interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.runtime.support import Cli, checkpoint


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    path = checkpoint(tmp_path)
    command = [sys.executable, "-m", "weightloom.runtime", "studio", str(path), "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = json.loads(process.stdout.readline())
            assert found["schema"] == 1 and found["url"].startswith("http://127.0.0.1:")
            with urllib.request.urlopen(found["url"], timeout=20) as page:
                assert page.status == 200 and b"model.embed_tokens.weight" not in page.headers.as_bytes()
                assert b"embed_tokens" in page.read()
            process.send_signal(signal.SIGINT)
            more, complaint = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, more, complaint.strip()) == (130, "", "interrupted")


def test_what_is_wrong_is_said_before_anything_is_served(cli: Cli, tmp_path: Path) -> None:
    path = checkpoint(tmp_path)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    assert cli("studio", tmp_path / "none", "--no-browser").code in (1, 3)
    assert cli("studio", path, "--rules", tmp_path / "rules.txt", "--no-browser").code == 2
    assert cli("studio", path, "--rules", tmp_path / "bytes.yaml", "--no-browser").code == 1
    assert cli("studio", path, "--arch", "no_such", "--no-browser").code == 1
    assert cli("studio", path, "--port", 99999, "--no-browser").code == 2
