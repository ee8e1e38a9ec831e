"""One browser for all tests, the checkpoints that are looked at, and studios."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import minilm
from tests.browser.models import write_deepseek
from weightloom.runtime.cli import main

if TYPE_CHECKING:
    from tests.browser.seeing import Page

# Without the extra these tests cannot even be imported; `make browser` installs it, and fails where it collects none.
collect_ignore_glob = [] if find_spec("selenium") else ["test_*.py"]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Page]:
    from tests.browser.seeing import Page, start

    browser = start()
    try:
        yield Page(browser)
    finally:
        browser.quit()


@pytest.fixture
def page(chromium: Page) -> Iterator[Page]:
    """Give a browser of which nobody has asked anything; no test may leave a complaint in its console."""
    chromium.browser.get("about:blank")
    chromium.complaints()
    chromium.asked()
    yield chromium
    assert chromium.complaints() == []


@pytest.fixture(scope="session")
def deepseek(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_deepseek(tmp_path_factory.mktemp("deepseek") / "model")


@pytest.fixture(scope="session")
def trained(request: pytest.FixtureRequest) -> Path:
    return minilm.fetch(request.config.cache.mkdir("minilm"))


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Give the page of a checkpoint, which `plan --html` wrote."""
    folder, known = tmp_path_factory.mktemp("pages"), dict[Path, Path]()

    def page_of(path: Path) -> Path:
        if path not in known:
            out = folder / f"{len(known)}.html"
            main(["plan", str(path), "--html", str(out), "--quiet", "--limit", "0"])
            known[path] = out
        return known[path]

    return page_of


@pytest.fixture
def studio(chromium: Page) -> Iterator[Callable[..., str]]:
    """Start studios with arguments; gives the address of each, and ends them all."""
    started: list[subprocess.Popen[str]] = []

    def serve(*arguments: object) -> str:
        command = [sys.executable, "-m", "weightloom.runtime", "studio", *map(str, arguments), "--no-browser", "--json"]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        out = started[-1].stdout
        assert out is not None
        url: str = json.loads(out.readline())["url"]
        return url

    yield serve
    # A page whose server is gone complains of that.
    chromium.browser.get("about:blank")
    for process in started:
        process.kill()
        process.communicate()
