"""Every key's tiny model: the published layout in, the parameters as the reference has them, the layout back."""

from __future__ import annotations

from functools import partial

import pytest

from tests.oracle.all_keys.check import check
from tests.oracle.all_keys.expected import expected
from tests.oracle.all_keys.jobs import FAMILIES, Job, jobs, mapping, registered
from tests.oracle.all_keys.precision import PREPARED
from tests.oracle.all_keys.towers import has_timm
from tests.oracle.all_keys.workers import run

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SAMPLE = [Job("llama"), Job("kimi_linear"), Job("gemma3", "untied"), Job("dory")]


def assert_expected(job: Job, dtype: str) -> None:
    (outcome,) = run([job], partial(check, dtype=dtype), workers=1)
    assert outcome.kind in expected(job, dtype), outcome.reasons


@pytest.mark.parametrize("job", jobs(), ids=str)
@pytest.mark.parametrize("dtype", PREPARED)
def test_a_key_comes_out_as_expected(job: Job, dtype: str) -> None:
    assert_expected(job, dtype)


@pytest.mark.sample
@pytest.mark.parametrize("job", SAMPLE, ids=str)
def test_a_few_keys(job: Job) -> None:
    assert_expected(job, "mixed")


def test_all_keys_are_among_the_jobs() -> None:
    assert set(registered()) == set(mapping())
    assert {job.key for job in jobs()} == {*registered(), *FAMILIES}


def test_all_that_can_be_built_are_to_come_out_right() -> None:
    wanted = [expected(job) for job in jobs()]
    assert sum("ok" in kinds for kinds in wanted) == (303 if has_timm() else 301)
    assert sum("differs" in kinds for kinds in wanted) == 0
