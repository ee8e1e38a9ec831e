"""`weightloom generate PATH -p TEXT`: continue a text, as it comes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from weightloom.runtime.terminal.arguments import add_adapter, add_losses, add_surgery, add_task, add_text_only, count
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome

if TYPE_CHECKING:
    from weightloom.runtime.adapting.wish import Fusing, Weighted
    from weightloom.runtime.loading.ranks import Way
    from weightloom.runtime.model import LoadedModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, a file or a GGUF model")
    parser.add_argument("-p", "--prompt", required=True, metavar="TEXT", help="the text to continue")
    parser.add_argument("--image", action="append", default=[], metavar="FILE", help="a picture; may be repeated")
    parser.add_argument("--chat", action="store_true", help="put the text as a user's message, by the chat template")
    parser.add_argument("--chat-template", metavar="NAME", help="as --chat, by the template of this name")
    parser.add_argument("--max-tokens", type=count, default=256, metavar="N", help="tokens at most (256)")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the likeliest token (0)")
    parser.add_argument("--seed", type=count, default=None, metavar="N", help="for temperatures above 0")
    add_running(parser)
    add_parallel(parser)


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add what every command takes that runs a model."""
    parser.add_argument("--rules", metavar="FILE", help="a rule file; its rules come before all others")
    parser.add_argument(
        "--dtype", metavar="NAME", help="cast to bfloat16, float16, float32, or auto (as the device is)"
    )
    recipe = "quantize as it is read, by a recipe (4bit, ..., a YAML file); dense unpacks what is quantized"
    parser.add_argument("--quantize", metavar="RECIPE", help=recipe)
    parser.add_argument("--architecture", metavar="NAME", help="which plugin, where several offer the model type")
    add_adapter(parser, "to put beside the parameters")
    parser.add_argument("--fuse", action="store_true", help="fuse the adapters into the parameters instead")
    add_losses(parser)
    add_task(parser)
    add_text_only(parser)
    add_surgery(parser)


def add_parallel(parser: argparse.ArgumentParser) -> None:
    """Add how several processes share a model."""
    parser.add_argument(
        "--parallel",
        choices=("tensor", "pipeline"),
        default="tensor",
        help="under mlx.launch: each process has a part of every layer, or some of the layers (tensor)",
    )


def load_model(args: argparse.Namespace, sharding: Way | None = None) -> LoadedModel:
    """Load the model that the arguments name, with adapters beside it, and with a progress bar."""
    from weightloom.runtime.extras import need_mlx

    need_mlx()
    from weightloom.runtime.loading.loading import load
    from weightloom.runtime.terminal.progress import progress_bar

    with progress_bar("load", args.quiet) as progress:
        return load(
            args.path,
            args.dtype,
            quantize=args.quantize,
            surgery=args.surgery,
            rules=args.rules,
            architecture=args.architecture,
            adapter=_adapters(args),
            sharding=sharding,
            text_only=True if args.text_only else None,
            progress=progress,
            task=args.task,
        )


def _adapters(args: argparse.Namespace) -> Sequence[Weighted] | Fusing | None:
    """Read the adapters that the arguments name, and whether they are fused; raises UsageError."""
    from weightloom.runtime.adapting.adapter_argument import all_weighted
    from weightloom.runtime.adapting.losses import LossPolicy
    from weightloom.runtime.adapting.wish import Fusing

    pairs, losses = all_weighted(args.adapter), LossPolicy(args.when_lost, args.max_loss)
    return Fusing(pairs, losses) if args.fuse else pairs or None


def run(args: argparse.Namespace) -> Outcome:
    """Generate; the text goes out piece by piece unless JSON is asked for. Of several ranks the first one speaks."""
    from weightloom.runtime.extras import need_mlx

    need_mlx()
    from weightloom.runtime.loading.ranks import find_group
    from weightloom.runtime.running.generation import generate

    m = load_model(args, args.parallel if find_group() is not None else None)
    speaks = m.share is None or m.share.group.rank() == 0
    chat = args.chat or args.chat_template is not None
    prompt: Any = [{"role": "user", "content": args.prompt}] if chat else args.prompt
    pieces = generate(
        m,
        prompt,
        args.max_tokens,
        args.temperature,
        stream=True,
        seed=args.seed,
        chat_template=args.chat_template,
        images=args.image,
    )
    text = _spoken(pieces, quiet=args.json or not speaks)
    if not speaks:
        return Outcome(FINE, {}, complaint=complaint(m))
    data = {"command": "generate", "path": args.path, "prompt": args.prompt, "text": text, "notes": m.notes}
    return Outcome(FINE, data, complaint=complaint(m))


def _spoken(pieces: Iterator[str], quiet: bool) -> str:
    """Write pieces as they come, unless it is to be quiet, until nobody listens; give all as one text."""
    from weightloom.runtime.terminal.printing import put

    said: list[str] = []
    for piece in pieces:
        said.append(piece)
        if not quiet and not put(piece):
            break
    if not quiet:
        put("\n")
    return "".join(said)


def complaint(m: LoadedModel) -> str:
    """What a model was loaded without, and of several ranks what this one holds, for the error stream."""
    return "\n".join((*(f"note: {note}" for note in m.notes), *(() if m.share is None else (str(m.share),))))


GENERATE = Command("generate", "continue a text with a model", add_arguments, run)
