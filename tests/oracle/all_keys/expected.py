"""What is expected to come of each job: ok, but for these."""

from __future__ import annotations

from importlib.util import find_spec

from tests.oracle.all_keys.jobs import DEAD, NOT_ALONE, Job
from tests.oracle.all_keys.outcome import Kind

# Classes that take a tower from a package of its own, which the reference implementation then needs.
NEEDS_TIMM = {"gemma3n", "timm_wrapper"}

# job -> why its outcome is not ok
DIFFERS: dict[str, str] = {
    "ernie4_5_vl_moe": "its text and vision experts are of different sizes, which StackAcross does not take yet",
}


def expected(job: Job) -> Kind:
    """Give the outcome that a job is to have."""
    if job.key in DEAD or job.key in NOT_ALONE or (job.key in NEEDS_TIMM and not _has_timm()):
        return "not built"
    return "differs" if str(job) in DIFFERS else "ok"


def _has_timm() -> bool:
    return find_spec("timm") is not None
