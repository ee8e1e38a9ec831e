"""A picture as one HTML file that needs nothing else: style, script and data are in it, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

from weightloom.runtime.picture.kinds import KINDS
from weightloom.runtime.picture.picture import Picture

STYLES = ("picture.css",)
# In the order in which they build on each other.
SCRIPTS = ("elements.js", "names.js", "rows.js", "threads.js", "inspector.js", "head.js", "filters.js", "loom.js")
_MARKUP = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


def page(picture: Picture) -> str:
    """Give the page of a picture."""
    return html(picture_data(picture), "picture.html", STYLES, (*SCRIPTS, "page.js"))


def picture_data(picture: Picture) -> dict[str, Any]:
    """Give what a page shows of a picture, as JSON values: the picture, and what its kinds mean."""
    return {**picture.to_json(), "kinds": KINDS}


def html(data: Any, body: str, styles: Sequence[str], scripts: Sequence[str], more_policy: str = "") -> str:
    """Put a page together from assets; its policy lets nothing run or be fetched that is not in it."""
    style, script = _joined(styles), f'"use strict";\n(() => {{\n{_joined(scripts)}\n}})();'
    policy = f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
    policy += f"base-uri 'none'; form-action 'none'{more_policy}"
    template = Template(_asset("page.html"))
    return template.substitute(policy=policy, style=style, script=script, body=_asset(body), data=embedded(data))


def embedded(data: Any) -> str:
    """Give data as JSON that can stand in a script element, whatever texts are in it."""
    return json.dumps(data, ensure_ascii=True, separators=(",", ":")).translate(_MARKUP)


def _joined(names: Sequence[str]) -> str:
    return "\n".join(map(_asset, names))


def _asset(name: str) -> str:
    return files("weightloom.runtime.picture.assets").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Give what a policy knows a script or a style by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
