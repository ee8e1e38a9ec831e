"""`weightloom embed PATH TEXT...`: vectors of texts, and how near they are to each other."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from weightloom.runtime.commands.generate import add_running, complaint, load_model
from weightloom.runtime.terminal.arguments import count
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory or file")
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="the texts; or --file")
    parser.add_argument("--file", metavar="FILE", help="a file with a text on each line")
    parser.add_argument(
        "--pooling",
        type=_ways,
        metavar="NAME[,NAME]",
        help="cls, max, mean, mean_sqrt_len, weightedmean, lasttoken; or several",
    )
    parser.add_argument("--prompt", metavar="TEXT", help="a text that goes before each")
    parser.add_argument("--prompt-name", metavar="NAME", help="the same, by its name among the model's own")
    parser.add_argument("--max-length", type=count, metavar="N", help="tokens of a text at most")
    add_running(parser)


def _ways(text: str) -> tuple[str, ...]:
    """Read ways to pool; raises ArgumentTypeError for one that there is not."""
    from weightloom.engine.errors import UsageError
    from weightloom.runtime.running.pooling import pooling_modes

    try:
        return pooling_modes(text.split(","))
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"{error.seen}; {error.expected}") from error


def run(args: argparse.Namespace) -> Outcome:
    """Embed; the text answer is the table of cosines, the JSON answer has the vectors too."""
    texts = [*args.texts, *(_lines(Path(args.file)) if args.file else ())]
    m = load_model(args)

    import mlx.core as mx

    from weightloom.runtime.running.embedding import embed

    vectors = embed(
        m,
        texts,
        pooling=args.pooling,
        prompt=args.prompt,
        prompt_name=args.prompt_name,
        max_length=args.max_length,
    )
    unit = vectors / mx.maximum(mx.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    cosines: list[list[float]] = (unit @ unit.T).tolist()  # type: ignore[assignment]
    data = {
        "command": "embed",
        "path": args.path,
        "texts": texts,
        "dimensions": vectors.shape[-1],
        "embeddings": vectors.tolist(),
        "cosines": cosines,
        "notes": m.notes,
    }
    remarks = f"\n{vectors.shape[-1]} dimensions"
    return Outcome(FINE, data, "\n".join(_table(texts, cosines)), remarks, complaint(m))


def _table(texts: Sequence[str], cosines: Sequence[Sequence[float]]) -> Iterator[str]:
    for text, row in zip(texts, cosines, strict=True):
        shown = text if len(text) <= 48 else text[:45] + "..."
        yield f"{shown:<48}  " + "  ".join(f"{value:6.3f}" for value in row)


def _lines(path: Path) -> list[str]:
    from weightloom.engine.errors import UsageError
    from weightloom.engine.os_errors import storage_error

    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise storage_error("read", path, error) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"is not text: {error}", expected="UTF-8, a text on each line", file=path) from error


EMBED = Command("embed", "embed texts with a model", add_arguments, run)
