"""`weightloom studio PATH`: a rule file beside the mapping that it makes, on a page of this machine alone."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.runtime.terminal.arguments import add_reading, add_text_only, count
from weightloom.runtime.terminal.command import Command
from weightloom.runtime.terminal.outcome import FINE, Outcome

if TYPE_CHECKING:
    from weightloom.runtime.studio.serving import Server


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("path", help="a directory, an index or a file")
    parser.add_argument("--arch", metavar="NAME", help="the model type whose parameters the rules are to lead to")
    parser.add_argument("--alone", action="store_true", help="without the rules that ship for the family")
    parser.add_argument("--port", type=count, default=0, metavar="N", help="the port to listen on (any that is free)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    add_text_only(parser)
    add_reading(parser)


def run(args: argparse.Namespace) -> Outcome:
    """Serve the page until interrupted."""
    from dataclasses import replace

    from weightloom.runtime.authoring.subject import open_subject
    from weightloom.runtime.choosing.wishes import wish_of
    from weightloom.runtime.studio.desk import Desk
    from weightloom.runtime.studio.opening import opened_in_browser
    from weightloom.runtime.studio.page import studio_page
    from weightloom.runtime.studio.rule_file import read_rule_file
    from weightloom.runtime.studio.serving import Server
    from weightloom.runtime.terminal.failure import failed

    file = read_rule_file(None if args.rules is None else Path(args.rules))
    file.text()
    with ExitStack() as stack:
        subject = stack.enter_context(open_subject(args.path, wish_of(args), args.arch))
        desk = Desk(subject.alone if args.alone else subject, file, args.path)
        stack.callback(desk.close)
        answers = {"plan": desk.plan, "save": desk.save, "take": desk.take}
        server = stack.enter_context(Server(args.port, lambda: studio_page(desk.start()), answers))
        _say(server, args)
        if not args.no_browser:
            stack.enter_context(opened_in_browser(server.guard.url))
        try:
            server.serve_forever()
        except KeyboardInterrupt as error:
            return replace(failed(error), data={})  # the object that was printed is the whole answer
    return Outcome(FINE, {})


def _say(server: Server, args: argparse.Namespace) -> None:
    """Print the address at once: the command ends when it is interrupted, and not before."""
    from weightloom.runtime.terminal.printing import SCHEMA, put

    url = server.guard.url
    facts = {"schema": SCHEMA, "command": "studio", "path": args.path, "rules": args.rules, "url": url}
    put(json.dumps(facts) + "\n" if args.json else f"{url}\nCtrl-C ends it\n")


STUDIO = Command("studio", "write rules beside the mapping that they make, in a browser", add_arguments, run)
