"""Hypothesis profiles: `dev` at the desk, `ci` (the same inputs every time), `thorough` (`make laws`).

No profile has a deadline: tests share the machine with others, and none of them measures time.
"""

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "dev", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None, print_blob=True)
settings.register_profile("thorough", settings.get_profile("dev"), max_examples=2000)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Started in the background, a process ignores interrupts; tests of interrupts need Python's own handler.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def forgotten_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imports from a folder of its own is forgotten afterwards: another may have a module of that name."""
    before = set(sys.modules)
    yield
    base = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(base):
            del sys.modules[name]
