"""The cases as test parameters; those that continuous integration runs are marked `sample`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.oracle.models import CASES, DTYPES


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.sample] if CASES[name].sample else []


def _files() -> Iterator[Any]:
    for name in CASES:
        for dtype in DTYPES:
            for sharded in (False, True):
                title = f"{name}-{dtype}-{'shards' if sharded else 'file'}"
                yield pytest.param(name, dtype, sharded, marks=_marks(name), id=title)


each_case = pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in CASES])
each_file = pytest.mark.parametrize(("name", "dtype", "sharded"), list(_files()))
