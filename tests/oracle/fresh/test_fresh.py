"""Every key's tiny model, never loaded: written as it is published, and whole for both sides that load it."""

from __future__ import annotations

import pytest

from tests.oracle.all_keys.expected import expected
from tests.oracle.all_keys.jobs import Job
from tests.oracle.all_keys.workers import run
from tests.oracle.fresh.check import check_fresh, fresh_jobs

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# Experts stacked, prefix changes in two scopes, a tie, layers that go in pairs.
SAMPLE = [Job("mixtral", "tied"), Job("llava"), Job("qwen3_vl_moe", "square"), Job("dory")]


def assert_expected(job: Job) -> None:
    (outcome,) = run([job], check_fresh, workers=1)
    assert outcome.kind in expected(job), outcome.reasons


@pytest.mark.parametrize("job", fresh_jobs(), ids=str)
def test_a_key_is_written_fresh(job: Job) -> None:
    assert_expected(job)


@pytest.mark.sample
@pytest.mark.parametrize("job", SAMPLE, ids=str)
def test_a_few_keys_are_written_fresh(job: Job) -> None:
    assert_expected(job)
