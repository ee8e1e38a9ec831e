"""Every shared family: our mlx form is mlx-lm's, computes the same, and leads back; theirs leads to the published."""

from __future__ import annotations

import pytest

from tests.oracle.all_keys.jobs import Job
from tests.oracle.all_keys.towers import NEEDS_TIMM, has_timm
from tests.oracle.all_keys.workers import run
from tests.oracle.mlx_layouts.check import check
from tests.oracle.mlx_layouts.families import JOBS

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SAMPLE = [Job("llama"), Job("mixtral"), Job("qwen3_next"), Job("llava")]


def assert_same(job: Job) -> None:
    (outcome,) = run([job], check, workers=1)
    assert outcome.kind == "ok", outcome.reasons


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_a_family_goes_there_and_back(job: Job) -> None:
    if job.key in NEEDS_TIMM and not has_timm():
        pytest.skip("needs the extra towers")
    assert_same(job)


@pytest.mark.sample
@pytest.mark.parametrize("job", SAMPLE, ids=str)
def test_a_few_families(job: Job) -> None:
    assert_same(job)
