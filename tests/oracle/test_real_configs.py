"""Published configs as they are: each is built and planned by an installed architecture, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.real_configs import COUNT, REFUSED, NotThereError, fetched, rows, table

pytestmark = pytest.mark.oracle

# How many numbers their publishers say that these have, in 1e9.
PUBLISHED = {
    "meta-llama--Meta-Llama-3.1-8B": 8.0,
    "Qwen--Qwen3-8B": 8.2,
    "Qwen--Qwen3-30B-A3B": 30.5,
    "mistralai--Mixtral-8x7B-v0.1": 46.7,
    "deepseek-ai--DeepSeek-V3": 671.0,
}


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    try:
        return fetched(tmp_path_factory.mktemp("configs"))
    except NotThereError as error:
        pytest.skip(str(error))


def test_each_is_planned_or_refused_by_name(configs: tuple[Path, ...]) -> None:
    found = list(rows(configs))
    print("\n" + table(found))
    assert len(found) == COUNT
    assert {row.route.split(" (")[0] for row in found} >= {"llama", "mixtral", "qwen3_moe", "deepseek_v3"}
    assert all(bool(row.tensors) == (row.route != REFUSED) for row in found)
    counted = {row.name: round(row.numbers / 1e9, 1) for row in found}
    assert {name: counted[name] for name in PUBLISHED} == PUBLISHED
    assert any(row.sees == "vision" for row in found)
