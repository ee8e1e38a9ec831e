"""Arguments that several commands share, and a parser whose errors are ours."""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

from weightloom.engine.errors import UsageError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:([KMGT]?)(i?)B?)", re.IGNORECASE)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError where argparse would print and leave."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the usage line."""
        usage = " ".join(self.format_usage().split())
        raise UsageError(message, expected=usage.removeprefix("usage: "), hint=f"see `{self.prog} --help`")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add what every command takes."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress bar, and only the answer itself")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_reading(parser: argparse.ArgumentParser, layout: str = "--layout") -> None:
    """Add what decides which rules a checkpoint is read by."""
    parser.add_argument("--rules", metavar="FILE", help="a rule file; its rules come before all others")
    add_choosing(parser, layout)


def add_choosing(parser: argparse.ArgumentParser, layout: str = "--layout") -> None:
    """Add the same, but for a rule file of the caller's."""
    parser.add_argument(layout, dest="read_layout", metavar="NAME", help="the layout that the checkpoint is in")
    parser.add_argument("--model-type", metavar="NAME", help="take the rules of this model type or class")
    parser.add_argument("--architecture", metavar="NAME", help="which plugin, where several offer the model type")
    add_task(parser)
    parser.add_argument(
        "--open-target", action="store_true", help="go by the rules alone, not by an architecture's parameters"
    )


def add_task(parser: argparse.ArgumentParser) -> None:
    """Add the wish for a task."""
    parser.add_argument(
        "--task", metavar="NAME", help="generate, embed, rerank, ...: what it is to do, where the files say another"
    )


def add_text_only(parser: argparse.ArgumentParser) -> None:
    """Add the wish for the text model of a checkpoint with towers."""
    parser.add_argument(
        "--text-only", action="store_true", help="the text model alone, of a checkpoint that has towers too"
    )


def add_surgery(parser: argparse.ArgumentParser) -> None:
    """Add the file that says what is changed on the way."""
    parser.add_argument("--surgery", metavar="FILE", help="a surgery file; else the one that WEIGHTLOOM_SURGERY names")


def add_adapter(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add adapters, each with a scale; `purpose` says what becomes of them."""
    parser.add_argument(
        "--adapter",
        action="append",
        metavar="DIR[:SCALE]",
        help=f"an adapter {purpose}, and its scale (1); may be repeated",
    )


def add_losses(parser: argparse.ArgumentParser) -> None:
    """Add what is done where rounding takes what is fused into a packed parameter."""
    parser.add_argument(
        "--when-lost",
        choices=("dense", "bits", "stop", "keep"),
        default="dense",
        help="what becomes of a packed parameter whose change is lost: unpacked, more bits, an error, as it is (dense)",
    )
    parser.add_argument(
        "--max-loss",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="the share of a change from which on it counts as lost (1: where nothing arrives)",
    )


def add_quantizing(parser: argparse.ArgumentParser) -> None:
    """Add what is done with matrices: packed by a recipe, or unpacked."""
    recipe = "quantize by a recipe: 4bit, 8bit, mxfp4, nvfp4, mixed_3_6, ..., or a YAML file of your own"
    parser.add_argument("--quantize", metavar="RECIPE", help=recipe)
    parser.add_argument(
        "--dequantize", action="store_true", help="unpack what is quantized; the config says nothing of it"
    )
    parser.add_argument(
        "--requantize", action="store_true", help="with --quantize: unpack first what is quantized already"
    )
    parser.add_argument(
        "--measure", action="store_true", help="with --quantize: say what rounding takes of each module"
    )


def byte_count(text: str) -> int:
    """Read "5GB", "500 MB", "2GiB" or a plain number as bytes; raises ArgumentTypeError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it like 5GB, 500MB or 2GiB")
    number, unit, binary = found.groups()
    factor = 1024 ** "KMGT".find(unit.upper()) * 1024 if binary and unit else _UNITS[unit.upper()]
    count = int(float(number) * factor)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive size")
    return count


def count(text: str) -> int:
    """Read a number that is not negative; raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return int(text)
