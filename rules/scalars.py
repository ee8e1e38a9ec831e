"""What an unquoted YAML scalar means. Readers of YAML 1.1 and of 1.2 disagree on some; those are refused.

`no` is false to one and text to the other, `1e-5` text to one and a number to the other, `012` is ten or twelve.
A rule file means the same to every reader, so such a scalar must be quoted or spelt another way.
Format: YAML 1.1 type repository (bool, int, float, null, timestamp, merge, value); YAML 1.2.2 section 10.3.2.
"""

from __future__ import annotations

import re

from weightloom.rules.nodes import Value

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?[0-9]{1,20}\.[0-9]{1,20}([eE][-+][0-9]{1,2})?")
_TRAP = re.compile(
    r"""
    y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF          # bools of 1.1
  | [-+]?[0-9][0-9_]*                                          # octal, or digits in groups, or too long
  | 0[xob][0-9a-fA-F_]+ | [-+]0[xob][0-9a-fA-F_]+
  | [-+]?([0-9][0-9_]*)?\.?[0-9_]*([eE][-+]?[0-9]+)?           # floats that only one of them reads
  | [-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)
  | [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?               # base 60
  | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?                 # dates
  | <<|=                                                       # merge, default value
    """,
    re.VERBOSE,
)


class Ambiguous(ValueError):
    """An unquoted scalar that YAML 1.1 and 1.2 read differently."""


def plain_value(text: str) -> Value:
    """Give the value of an unquoted scalar; raises Ambiguous where readers of YAML disagree."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if len(text) < 100 and text not in (".", "-", "+", "_") and _TRAP.fullmatch(text):
        raise Ambiguous(text)
    return text
