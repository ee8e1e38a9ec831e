"""Checkpoints of the reference implementation, each written once a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Saved = Callable[[str, str, bool], Path]


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    from tests.oracle.peer import save

    root = tmp_path_factory.mktemp("oracle")
    made: dict[tuple[str, str, bool], Path] = {}

    def directory(name: str, dtype: str, sharded: bool) -> Path:
        key = (name, dtype, sharded)
        if key not in made:
            made[key] = save(name, dtype, sharded, root / f"{name}-{dtype}-{'shards' if sharded else 'file'}")
        return made[key]

    return directory
