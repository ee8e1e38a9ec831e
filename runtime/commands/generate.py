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


PROMPT = "the text to continue; of several, repeated, the continuations come in their order, each after a line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, a file or a GGUF model")
    parser.add_argument("-p", "--prompt", required=True, action="append", metavar="TEXT", help=PROMPT)
    parser.add_argument("--image", action="append", default=[], metavar="FILE", help="a picture; may be repeated")
    parser.add_argument("--chat", action="store_true", help="put the text as a user's message, by the chat template")
    parser.add_argument("--chat-template", metavar="NAME", help="as --chat, by the template of this name")
    parser.add_argument("--max-tokens", type=count, default=256, metavar="N", help="tokens at most (256)")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 takes the likeliest token (0)")
    parser.add_argument("--top-k", type=count, default=0, metavar="K", help="choose among the K likeliest tokens (all)")
    parser.add_argument("--top-p", type=float, default=1.0, metavar="P", help="among the fewest that make up P (1)")
    parser.add_argument("--min-p", type=float, default=0.0, metavar="P", help="not below P times the likeliest (0)")
    parser.add_argument("--repetition-penalty", type=float, default=1.0, metavar="F", help="1 has no effect (1)")
    parser.add_argument("--seed", type=count, default=None, metavar="N", help="for temperatures above 0")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before it; may be repeated")
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

    m = load_model(args, args.parallel if find_group() is not None else None)
    speaks = m.share is None or m.share.group.rank() == 0
    prompts = [_prompt(args, text) for text in args.prompt]
    if len(prompts) > 1:
        texts = _batch(m, prompts, args)
        printed = "\n".join(f"== {number}\n{text}" for number, text in enumerate(texts, 1))
        said: dict[str, Any] = {"prompts": args.prompt, "texts": texts}
    else:
        printed = ""
        said = {"prompt": args.prompt[0], "text": _spoken(_pieces(m, prompts[0], args), args.json or not speaks)}
    if not speaks:
        return Outcome(FINE, {}, complaint=complaint(m))
    data = {"command": "generate", "path": args.path, **said, "notes": m.notes}
    return Outcome(FINE, data, printed, complaint=complaint(m))


def _prompt(args: argparse.Namespace, text: str) -> Any:
    chat = args.chat or args.chat_template is not None
    return [{"role": "user", "content": text}] if chat else text


def _pieces(m: LoadedModel, prompt: Any, args: argparse.Namespace) -> Iterator[str]:
    from weightloom.runtime.running.generation import generate

    tokens, template, how = args.max_tokens, args.chat_template, _sampling(args)
    return generate(m, prompt, tokens, stream=True, chat_template=template, images=args.image, **how)


def _batch(m: LoadedModel, prompts: Sequence[Any], args: argparse.Namespace) -> list[str]:
    from weightloom.engine.errors import UsageError
    from weightloom.runtime.running.generation import generate_batch

    if args.image:
        raise UsageError("--image with several prompts", expected="one prompt with its pictures", field="--image")
    return generate_batch(m, prompts, args.max_tokens, chat_template=args.chat_template, **_sampling(args))


def _sampling(args: argparse.Namespace) -> dict[str, Any]:
    names = ("temperature", "seed", "top_k", "top_p", "min_p", "repetition_penalty", "stop")
    return {name: getattr(args, name) for name in names}


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
