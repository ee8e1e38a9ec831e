"""The studio's page: an editor beside the picture."""

from __future__ import annotations

from typing import Any

from weightloom.runtime.picture.page import Assets, in_one_scope, joined, picture_body, picture_script, picture_style

_OWN = "weightloom.runtime.studio.assets"


def studio_page(state: dict[str, Any]) -> tuple[str, str]:
    """Give the page with what it shows first, and its policy: it may ask the server that it came from, nobody else."""
    body = f'<div class="studio">\n{joined(_OWN, ["studio.html"])}\n{picture_body()}\n</div>'
    script = in_one_scope(picture_script(), joined(_OWN, ["editor.js", "studio.js"]))
    assets = Assets(body, f"{picture_style()}\n{joined(_OWN, ['studio.css'])}", script)
    policy = f"{assets.policy()}; connect-src 'self'"
    return assets.html(state, policy), f"{policy}; frame-ancestors 'none'"
