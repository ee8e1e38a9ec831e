"""Every family whose mlx form is compared, by key."""

from __future__ import annotations

from tests.oracle.all_keys.jobs import Job
from tests.oracle.mlx_layouts.dense import DENSE
from tests.oracle.mlx_layouts.experts import EXPERTS
from tests.oracle.mlx_layouts.hybrid import HYBRID

FAMILIES = {Job(family.key, family.variant): family for family in (*DENSE, *EXPERTS, *HYBRID)}
JOBS = sorted(FAMILIES, key=lambda job: str(job).lower())
