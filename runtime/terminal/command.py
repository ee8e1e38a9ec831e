"""Command: one verb of the command line, as a value."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from weightloom.runtime.terminal.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Command:
    """Its name, a line of help, what it takes, and what it does. `run` may raise any WeightloomError."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Outcome]
