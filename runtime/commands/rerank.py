"""`weightloom rerank PATH QUERY DOC...`: how well each document answers a query, the best first."""

from __future__ import annotations

import argparse

from weightloom.runtime.commands.generate import add_running, complaint, load_model
from weightloom.runtime.terminal.arguments import count
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory or file")
    parser.add_argument("query", metavar="QUERY", help="what is asked")
    parser.add_argument("documents", nargs="+", metavar="DOC", help="the texts to score")
    parser.add_argument("--label", metavar="NAME", help="whose share scores, where the classifier has several labels")
    parser.add_argument("--activation", choices=("sigmoid", "identity"), help="instead of what the files say")
    parser.add_argument("--max-length", type=count, metavar="N", help="tokens of a pair at most")
    add_running(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Score; the text answer has the best first, the JSON answer the scores in the documents' order too."""
    m = load_model(args)
    from weightloom.runtime.running.reranking import rerank

    scores = rerank(
        m, args.query, args.documents, label=args.label, activation=args.activation, max_length=args.max_length
    )
    order = sorted(range(len(scores)), key=lambda number: -scores[number])
    data = {
        "command": "rerank",
        "path": args.path,
        "query": args.query,
        "scores": scores,
        "ranking": [{"index": n, "score": scores[n], "document": args.documents[n]} for n in order],
        "notes": m.notes,
    }
    text = "\n".join(f"{scores[n]:8.4f}  {args.documents[n]}" for n in order)
    return Outcome(FINE, data, text, complaint=complaint(m))


RERANK = Command("rerank", "score how well documents answer a query", add_arguments, run)
