"""A page as somebody sees it: what is shown, what the console says, and where requests went."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

# Debian's, so that nothing is looked for or fetched.
CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1400,900",
)
_SECONDS = 60
_SHOWN = "const shown = (what) => [...document.querySelectorAll(what)].filter((e) => e.checkVisibility());"


def start() -> webdriver.Chrome:
    """Start Chromium, with its logs of the console and the network."""
    missing = [str(path) for path in (CHROMIUM, DRIVER) if not path.exists()]
    assert not missing, f"{missing} are not there: apt-get install chromium chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(str(DRIVER)))


@dataclass(frozen=True)
class Page:
    """What a browser shows."""

    browser: webdriver.Chrome

    def open(self, url: str) -> Page:
        self.browser.get(url)
        self.wait(lambda: self.all(".band"))
        return self

    def all(self, selector: str) -> list[WebElement]:
        """Give what is shown, in one request: a page has hundreds of rows."""
        found: list[WebElement] = self.run(f"{_SHOWN} return shown(arguments[0])", selector)
        return found

    def one(self, selector: str) -> WebElement:
        (found,) = self.all(selector)
        return found

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def run(self, script: str, *arguments: object) -> Any:
        return self.browser.execute_script(script, *arguments)

    def wait(self, until: Any) -> None:
        WebDriverWait(self.browser, _SECONDS).until(lambda _: until())

    def row(self, text: str) -> WebElement:
        """Give the first row whose name has a text."""
        names = self.names()
        return self.all(".row")[next(at for at, name in enumerate(names) if text in name)]

    def names(self) -> list[str]:
        """Give the names of the rows that are shown."""
        found: list[str] = self.run(f"{_SHOWN} return shown('.row > .name').map(e => e.textContent)")
        return found

    def point_at(self, row: WebElement) -> str:
        """Move the pointer to a row; gives what is said of it."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", row)
        ActionChains(self.browser).move_to_element(row).perform()
        return self.text("#inspector")

    def search(self, words: str) -> list[str]:
        """Search; gives the names of the rows that are left."""
        field = self.one("#search")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(words or Keys.DELETE)
        return self.names()

    def kinds(self) -> list[str]:
        """Give the kinds of the threads that are shown."""
        classes: list[str] = self.run(f"{_SHOWN} return shown('.band').map(e => e.className)")
        return [name.removeprefix("kind-") for each in classes for name in each.split() if name.startswith("kind-")]

    def complaints(self) -> list[str]:
        """Give what the console says since it was last asked; what breaks the policy is said there."""
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def asked(self) -> set[str]:
        """Give where requests went since that was last asked: scheme and host."""
        return {f"{url.scheme}://{url.netloc}" for url in map(urlsplit, self._requests())}

    def _requests(self) -> Iterator[str]:
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                yield message["params"]["request"]["url"]

    def is_too_wide(self) -> bool:
        return bool(self.run("return document.documentElement.scrollWidth > document.documentElement.clientWidth"))
