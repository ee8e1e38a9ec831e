"""What is expected to come of each job."""

from __future__ import annotations

from tests.oracle.all_keys.jobs import DEAD, Job
from tests.oracle.all_keys.outcome import Kind
from tests.oracle.all_keys.towers import NEEDS_TIMM, has_timm


def expected(job: Job, dtype: str = "float32") -> set[Kind]:
    """Give the outcomes that a job may have in a precision."""
    if job.key in DEAD:
        return {"no such model"}
    if job.key in NEEDS_TIMM and not has_timm():
        return {"not built"}
    return {"ok"} if dtype == "float32" else {"ok", "ok, dtypes kept"}
