"""The sandbox of chat templates: no attribute that leads out, nothing changed, no single step that fills the memory.

It does not bound the work of a template as a whole: loops within loops may take long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sized
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_LENGTH = 1_000_000
_MAX_NUMBER = 2**64
# A width of five digits or more, or one that is an argument; nobody pads a prompt like that.
_WIDE = re.compile(r"\d{5}|\*|\{[^{}]*\{")
_GUARDED = ("center", "format", "indent")


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's immutable sandbox, which also refuses products, powers and paddings that fill the memory.

    `range` is Jinja's own there: it takes 100,000 items at most.
    """

    intercepted_binops = frozenset(["*", "**", "%"])

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.filters.update({name: _guarded(self.filters[name]) for name in _GUARDED})
        del self.globals["lipsum"]

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Refuse before anything is made; raises SecurityError."""
        if operator == "**":
            _refuse_if(not (_is_small(left) and _is_small(right) and abs(right) <= 64), "a power of large numbers")
        elif operator == "*":
            _refuse_if(_length(left, right) > MAX_LENGTH, "a repetition that makes something huge")
            _refuse_if(not (_is_bounded(left) and _is_bounded(right)), "a product of large numbers")
        else:
            _check_padding((left,))
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __called: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Refuse widths and counts that make a huge text (`center`, `ljust`, ...)."""
        _check_padding(_numbers((*args, *kwargs.values())))
        return super().call(__context, __called, *args, **kwargs)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Refuse widths in the text of a `str.format`, which Jinja wraps in one of its own."""
        made = super().wrap_str_format(value)
        if made is not None:
            _check_padding((value.__self__,))
        return made


def _guarded(made: Callable[..., Any]) -> Callable[..., Any]:
    def checked(value: Any, *args: Any, **kwargs: Any) -> Any:
        _check_padding((*([value] if made.__name__ == "do_format" else []), *_numbers((*args, *kwargs.values()))))
        return made(value, *args, **kwargs)

    return checked


def _numbers(values: Any) -> list[int]:
    return [value for value in values if isinstance(value, int)]


def _check_padding(values: Any) -> None:
    for value in values:
        _refuse_if(isinstance(value, str) and bool(_WIDE.search(value)), "a width that large")
        _refuse_if(isinstance(value, int) and abs(value) > MAX_LENGTH, "a number that large")


def _length(left: Any, right: Any) -> int:
    """How long a repetition of a text or a list gets; 0 for a product of numbers."""
    for items, times in ((left, right), (right, left)):
        if isinstance(items, Sized) and isinstance(times, int):
            return len(items) * times
    return 0


def _is_small(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= MAX_LENGTH


def _is_bounded(value: Any) -> bool:
    return not isinstance(value, int) or abs(value) < _MAX_NUMBER


def _refuse_if(condition: bool, what: str) -> None:
    if condition:
        raise SecurityError(f"{what} is not allowed in a template")
