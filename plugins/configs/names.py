"""Fields that configs call by more than one name: Transformers' own, and that of the first published files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from weightloom.engine.errors import ConfigError
from weightloom.plugins.configs.config import refuse_unless

T = TypeVar("T")


def also_named(names: Mapping[str, str], reader: Callable[[Mapping[str, Any]], T]) -> Callable[[Mapping[str, Any]], T]:
    """Give a reader that takes fields by other names as well; `names` leads from those to the fields that it reads.

    Its errors name what the config has. Raises ConfigError for two names of one field with two values.
    """

    def read_either(content: Mapping[str, Any]) -> T:
        said = {field: other for other, field in names.items() if other in content}
        for field, other in said.items():
            same = field not in content or content[field] == content[other]
            refuse_unless(same, other, content[other], f"what {field} says, {content.get(field)!r}")
        try:
            return reader({**content, **{field: content[other] for field, other in said.items()}})
        except ConfigError as error:
            if error.field in said and error.field not in content:
                raise _of_field(error, said[error.field]) from error
            raise

    return read_either


def _of_field(error: ConfigError, other: str) -> ConfigError:
    """Give the same error of the field under its other name."""
    seen = error.seen.replace(error.field or "", other, 1)
    return ConfigError(seen, expected=error.expected, hint=error.hint, field=other)
