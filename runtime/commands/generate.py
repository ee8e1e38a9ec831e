"""`weightloom generate PATH -p TEXT`: continue a text, as it comes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from weightloom.runtime.arguments import count
from weightloom.runtime.command import Command
from weightloom.runtime.outcome import FINE, Outcome

if TYPE_CHECKING:
    from weightloom.runtime.model import LoadedModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, a file or a GGUF model")
    parser.add_argument("-p", "--prompt", required=True, metavar="TEXT", help="the text to continue")
    parser.add_argument("--chat", action="store_true", help="put the text as a user's message, by the chat template")
    parser.add_argument("--max-tokens", type=count, default=256, metavar="N", help="tokens at most (256)")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the likeliest token (0)")
    parser.add_argument("--seed", type=count, default=None, metavar="N", help="for temperatures above 0")
    add_running(parser)


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add what every command takes that runs a model."""
    parser.add_argument("--rules", metavar="FILE", help="a rule file; its rules come before all others")
    parser.add_argument("--dtype", metavar="NAME", help="cast the parameters: bfloat16, float16 or float32")
    parser.add_argument("--architecture", metavar="NAME", help="which plugin, where several offer the model type")


def load_model(args: argparse.Namespace) -> LoadedModel:
    """Load the model that the arguments name, with a progress bar."""
    from weightloom.runtime.extras import need_mlx

    need_mlx()
    from weightloom.runtime.loading import load
    from weightloom.runtime.progress import progress_bar

    with progress_bar("load", args.quiet) as progress:
        return load(args.path, args.dtype, rules=args.rules, architecture=args.architecture, progress=progress)


def run(args: argparse.Namespace) -> Outcome:
    """Generate; the text goes out piece by piece unless JSON is asked for."""
    from weightloom.runtime.generation import generate
    from weightloom.runtime.printing import put

    m = load_model(args)
    prompt: Any = [{"role": "user", "content": args.prompt}] if args.chat else args.prompt
    pieces: list[str] = []
    for piece in generate(m, prompt, args.max_tokens, args.temperature, stream=True, seed=args.seed):
        pieces.append(piece)
        if not args.json and not put(piece):
            break
    text = "".join(pieces)
    data = {"command": "generate", "path": args.path, "prompt": args.prompt, "text": text, "notes": m.notes}
    if not args.json:
        put("\n")
    return Outcome(FINE, data, complaint=complaint(m))


def complaint(m: LoadedModel) -> str:
    """What a model was loaded without, for the error stream."""
    return "\n".join(f"note: {note}" for note in m.notes)


GENERATE = Command("generate", "continue a text with a model", add_arguments, run)
