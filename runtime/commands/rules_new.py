"""`weightloom rules new PATH --arch NAME`: propose a rule file from names and shapes, what is not certain marked."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import AT_FAULT, FINE, Outcome
from weightloom.runtime.terminal.text import aligned, plural

if TYPE_CHECKING:
    from weightloom.rules.proposing.proposal import Proposal, ProposedRule
    from weightloom.rules.proposing.templates import Template
    from weightloom.runtime.authoring.replan import Replanned

_SHOWN = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, an index or a file; headers and config.json alone are read")
    parser.add_argument("--arch", metavar="NAME", help="the model type whose parameters are wanted (the config's)")
    parser.add_argument("--architecture", metavar="NAME", help="which plugin, where several offer the model type")
    parser.add_argument(
        "--layout", type=_layout, default="hf", metavar="NAME", help="what to call the layout (%(default)s)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write the rule file (standard output)")
    parser.add_argument("--overwrite", action="store_true", help="replace the file if it is there")
    parser.epilog = "Exit code 0: nothing is left to decide. 1: something is marked, or was left over."


def run(args: argparse.Namespace) -> Outcome:
    """Propose, plan by what was proposed, and say how much of the checkpoint it covers."""
    from weightloom.engine.disk.single_file import check_ending, check_free, write_single
    from weightloom.rules.loader import RULE_FILES
    from weightloom.rules.proposing.writing import rule_text
    from weightloom.runtime.authoring.proposing import proposed
    from weightloom.runtime.authoring.replan import replan
    from weightloom.runtime.authoring.subject import open_subject
    from weightloom.runtime.choosing.choice import Wish

    if args.output is not None:
        check_ending(args.output, *RULE_FILES)
        check_free(args.output, overwrite=args.overwrite)
    wish = Wish(architecture=args.architecture)
    with open_subject(args.path, wish, args.arch) as subject:
        proposal = proposed(subject)
        assert subject.parameters is not None
        found = subject.parameters.architecture
        family = args.arch or str(subject.config.get("model_type") or found.model_types[0])
        text = rule_text(proposal, family, args.layout, [family], found.base_model_prefix)
        tried = replan(text.encode(), args.output or "the proposal", subject.alone)
    if args.output is not None:
        write_single(args.output, text.encode(), overwrite=args.overwrite)
    data = {"command": "rules new", "path": args.path, "file": args.output, "target": subject.target}
    said = {**data, **_json(proposal, tried), "text": text}
    report = "\n".join(_report(proposal, tried, subject.target))
    shown = "" if args.output is not None else text.rstrip("\n")
    if proposal.settled:
        return Outcome(FINE, said, shown, remarks="" if shown else report)
    return Outcome(AT_FAULT, said, shown, complaint="" if args.quiet or args.json else report)


def _layout(text: str) -> str:
    from weightloom.rules.parse import LAYOUT_NAME

    if not LAYOUT_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a layout's name: letters, digits, dots, - and _")
    return text


def _json(proposal: Proposal, tried: Replanned) -> dict[str, Any]:
    return {
        "tensors": proposal.tensors,
        "matched": proposal.matched,
        "settled": proposal.settled,
        "would_load": tried.error is None and tried.plan is not None,
        "error": None if tried.error is None else tried.error.to_json(),
        "faults": [fault.to_json() for fault in tried.faults],
        "rules": list(map(_rule_json, proposal.rules)),
        "matches": [
            {
                "tensors": [source.text for source in link.sources],
                "parameters": [target.text for target in link.targets],
                "count": len(link.names),
                "ops": [{op.name: dict(op.arguments)} for op in link.ops],
                "evidence": link.evidence,
                "to_decide": list(link.doubts),
            }
            for link in proposal.links
        ],
        "left": [{"tensors": each.text, "could_be": proposal.candidates[each.text]} for each in proposal.left],
        "wanted": [each.text for each in proposal.wanted],
        "remarks": list(proposal.remarks),
    }


def _rule_json(rule: ProposedRule) -> dict[str, Any]:
    return {**rule.item, "evidence": list(rule.evidence), "to_decide": list(rule.doubts)}


def _report(proposal: Proposal, tried: Replanned, target: str) -> Iterator[str]:
    share = proposal.matched / max(1, proposal.tensors)
    doubtful = sum(len(link.names) for link in proposal.doubtful)
    rows = [
        ("target", target),
        ("matched", f"{proposal.matched:,} of {plural(proposal.tensors, 'tensor')} ({share:.1%})"),
        ("rules", f"{len(proposal.rules):,}"),
        ("to decide", f"{plural(doubtful, 'tensor')}"),
        ("left over", f"{plural(sum(len(each.shapes) for each in proposal.left), 'tensor')}"),
        ("wanted", f"{plural(sum(len(each.shapes) for each in proposal.wanted), 'parameter')}"),
        ("would load", "yes" if tried.plan is not None and tried.error is None else "no"),
    ]
    yield from aligned(rows)
    yield from map(str, tried.faults)
    yield from _doubts(proposal)
    yield from _templates("no parameter for", proposal.left)
    yield from _templates("no tensor for", proposal.wanted)
    yield from (f"mind: {remark}" for remark in proposal.remarks)


def _doubts(proposal: Proposal) -> Iterator[str]:
    said: dict[str, list[str]] = {}
    for link in proposal.doubtful:
        for doubt in link.doubts:
            said.setdefault(doubt, []).append(", ".join(source.text for source in link.sources))
    for doubt, names in said.items():
        yield f"to decide: {doubt}"
        yield from (f"  {name}" for name in names[:_SHOWN])
        if len(names) > _SHOWN:
            yield f"  ... and {len(names) - _SHOWN} more"


def _templates(title: str, templates: tuple[Template, ...]) -> Iterator[str]:
    yield from (f"{title} {each.shown} {list(each.example)}" for each in templates[:_SHOWN])
    if len(templates) > _SHOWN:
        yield f"{title} {len(templates) - _SHOWN} more"


RULES_NEW = Command("new", "propose a rule file for a checkpoint's layout", add_arguments, run)
