"""Every family whose mlx form is compared, by key."""

from __future__ import annotations

from tests.oracle.all_keys.jobs import Job
from tests.oracle.mlx_layouts.dense import DENSE
from tests.oracle.mlx_layouts.experts import EXPERTS
from tests.oracle.mlx_layouts.hybrid import HYBRID

FAMILIES = {family.key: family for family in (*DENSE, *EXPERTS, *HYBRID)}
JOBS = [Job(key) for key in sorted(FAMILIES, key=str.lower)]
