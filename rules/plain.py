"""Names without what people spell in several ways."""


def plain(name: str) -> str:
    """Give a name without case, `-` and `_`."""
    return name.lower().replace("-", "").replace("_", "")
