"""Open a checkpoint with its config and its rules, and plan it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine.checkpoint import Checkpoint
from weightloom.runtime.choice import Choice, Wish, choose
from weightloom.runtime.config import Config, find_config

if TYPE_CHECKING:
    from weightloom.engine.plan import Plan


@dataclass(frozen=True)
class Planned:
    """A checkpoint, what decided on its rules, and the plan."""

    checkpoint: Checkpoint
    config: Config | None
    choice: Choice
    plan: Plan


def wish_of(args: argparse.Namespace) -> Wish:
    """Take what the arguments say about the rules."""
    return Wish(args.rules, args.read_layout, args.model_type)


@contextmanager
def planned(path: str, wish: Wish) -> Iterator[Planned]:
    """Open and plan a checkpoint, with an open target; it is closed at the end. Reads headers only.

    Raises CheckpointError, RuleError, UsageError and StorageError as opening, choosing and planning do.
    """
    from weightloom.engine.build import build_plan

    with Checkpoint.open(path) as checkpoint:
        config = find_config(Path(path))
        choice = choose(config, wish, path)
        rules = choice.rules()
        yield Planned(
            checkpoint, config, choice, build_plan(checkpoint, rules, config=config.values if config else None)
        )
