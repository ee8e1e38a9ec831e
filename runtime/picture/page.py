"""A picture as one HTML file that needs nothing else: style, script and data are in it, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

from weightloom.runtime.picture.kinds import KINDS
from weightloom.runtime.picture.picture import Picture

_OWN = "weightloom.runtime.picture.assets"
_MARKUP = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


@dataclass(frozen=True, slots=True)
class Assets:
    """What a page is made of, as text: its body, its style, and its script."""

    body: str
    style: str
    script: str

    def policy(self) -> str:
        """Say what the page may do: run and look like what is in it, and fetch nothing."""
        own = f"style-src {_digest(self.style)}; script-src {_digest(self.script)}; img-src data:"
        return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"

    def html(self, data: Any, policy: str) -> str:
        """Put the page together around the data that it shows."""
        template = Template(joined(_OWN, ["page.html"]))
        return template.substitute(
            policy=policy, style=self.style, script=self.script, body=self.body, data=embedded(data)
        )


def page(picture: Picture) -> str:
    """Give the page of a picture."""
    assets = Assets(picture_body(), picture_style(), in_one_scope(picture_script(), joined(_OWN, ["page.js"])))
    return assets.html(picture_data(picture), assets.policy())


def picture_data(picture: Picture) -> dict[str, Any]:
    """Give what a page shows of a picture, as JSON values: the picture, and what its kinds mean."""
    return {**picture.to_json(), "kinds": KINDS}


def picture_body() -> str:
    """Give the elements in which a picture is shown."""
    return joined(_OWN, ["picture.html"])


def picture_style() -> str:
    """Give the style of a picture."""
    return joined(_OWN, ["picture.css"])


def picture_script() -> str:
    """Give the scripts that show a picture, in the order in which they build on each other."""
    names = ["elements", "names", "rows", "threads", "inspector", "head", "filters", "loom"]
    return joined(_OWN, [f"{name}.js" for name in names])


def in_one_scope(*scripts: str) -> str:
    """Give scripts as one that leaves no name behind."""
    return '"use strict";\n(() => {\n' + "\n".join(scripts) + "\n})();"


def joined(package: str, names: Sequence[str]) -> str:
    """Give the texts of assets, one after the other."""
    folder = files(package)
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def embedded(data: Any) -> str:
    """Give data as JSON that can stand in a script element, whatever texts are in it."""
    return json.dumps(data, ensure_ascii=True, separators=(",", ":")).translate(_MARKUP)


def _digest(text: str) -> str:
    """Give what a policy knows a script or a style by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
