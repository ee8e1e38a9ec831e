"""The page: one file that fetches nothing, in which no name of a checkpoint can become markup or code."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

from tests.runtime.picture.plans import picture
from weightloom.runtime.picture.kinds import KINDS
from weightloom.runtime.picture.page import page

EVIL = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "a\u2028b\u2029c",
    "&lt;b&gt;",
]


class Parts(HTMLParser):
    """The elements of a page, and what is in its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.inside: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("script", "style") and data.strip():
            self.inside.append((self.tags[-1], data))


def test_names_stay_data() -> None:
    found = Parts(page(picture(dict.fromkeys(EVIL, (2,)))))
    assert found.tags.count("script") == 2 and "img" not in found.tags
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "src"]
    data = json.loads(next(text for tag, text in found.inside if tag == "script"))
    assert {"".join(row["parts"]) for row in data["left"]} == set(EVIL)


def test_nothing_is_fetched_and_the_policy_knows_all_that_runs() -> None:
    text = page(picture({"a.w": (2,)}))
    found = Parts(text)
    policy = dict(found.attributes[2:4])["content"] or ""
    assert "default-src 'none'" in policy and "unsafe" not in policy
    ran = [inside for inside in found.inside if not inside[1].lstrip().startswith("{")]
    for kind, inside in ran:
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert len(ran) == 2
    assert not re.findall(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z]", text)


def test_every_kind_has_a_colour() -> None:
    text = page(picture({"a.w": (2,)}))
    assert not [kind for kind in KINDS if f".kind-{kind}" not in text]
