"""Quoting: any text as YAML that reads back as it was, and inside a comment."""

from __future__ import annotations


def quoted(text: str) -> str:
    """Write a text in single quotes; in double ones where it has characters that YAML or an editor would not leave."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(_escaped(each) if each not in '"\\' else f"\\{each}" for each in text) + '"'


def commented(text: str) -> str:
    """Write a text on one line, what cannot be printed as escapes."""
    return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
