"""Every key's tiny model: the published layout in, the parameters as the reference has them, the layout back."""

from __future__ import annotations

import pytest

from tests.oracle.all_keys.check import check
from tests.oracle.all_keys.expected import expected
from tests.oracle.all_keys.jobs import FAMILIES, Job, jobs, mapping, registered
from tests.oracle.all_keys.workers import run

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SAMPLE = [Job("llama"), Job("kimi_linear"), Job("gemma3", "untied"), Job("dory")]


def assert_expected(job: Job) -> None:
    (outcome,) = run([job], check, workers=1)
    assert outcome.kind == expected(job), outcome.reasons


@pytest.mark.parametrize("job", jobs(), ids=str)
def test_a_key_comes_out_as_expected(job: Job) -> None:
    assert_expected(job)


@pytest.mark.sample
@pytest.mark.parametrize("job", SAMPLE, ids=str)
def test_a_few_keys(job: Job) -> None:
    assert_expected(job)


def test_all_keys_are_among_the_jobs() -> None:
    assert set(registered()) == set(mapping())
    assert {job.key for job in jobs()} == {*registered(), *FAMILIES}
