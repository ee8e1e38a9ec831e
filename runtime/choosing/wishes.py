"""What the arguments of a command say about the rules."""

from __future__ import annotations

import argparse

from weightloom.runtime.choosing.choice import Wish


def wish_of(args: argparse.Namespace) -> Wish:
    """Take what the arguments say about the rules."""
    text_only = True if vars(args).get("text_only") else None
    return Wish(
        vars(args).get("rules"),
        args.read_layout,
        args.model_type,
        args.open_target,
        args.architecture,
        text_only,
        args.task,
    )
