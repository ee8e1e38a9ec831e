"""Changes: where the two names of a link differ, each such span a rename."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from weightloom.rules.proposing import spelling
from weightloom.rules.proposing.links import Link

Rename = tuple[str, str]


@dataclass(frozen=True)
class Span:
    """Where two names differ: parts [start, stop) of the one are parts [first, last) of the other.

    `widened` counts how often it took in a part beside it that is the same in both: left, right, left, ...
    """

    start: int
    stop: int
    first: int
    last: int
    widened: int = 0


@dataclass(frozen=True)
class Change:
    """A name, where it leads, and the spans that differ, each of which is a rename."""

    link: Link
    spans: tuple[Span, ...]

    __hash__ = None  # type: ignore[assignment]  # a link is not hashable

    @property
    def before(self) -> tuple[str, ...]:
        """The parts on disk."""
        return self.link.sources[0].parts

    @property
    def after(self) -> tuple[str, ...]:
        """The parts of the parameter."""
        return self.link.targets[0].parts

    @property
    def renames(self) -> tuple[Rename, ...]:
        """The spans as renames."""
        return tuple(map(self._rename, self.spans))

    def _rename(self, span: Span) -> Rename:
        first, last = span.start == 0, span.stop == len(self.before)
        source = spelling.source(self.before[span.start : span.stop], first=first, last=last)
        return source, spelling.target(self.after[span.first : span.last], first=first, last=last)

    def widened(self, rename: Rename) -> Change:
        """Give it with the span of a rename one part wider."""
        return replace(
            self, spans=_joined([self._wider(each) if self._rename(each) == rename else each for each in self.spans])
        )

    def _wider(self, span: Span) -> Span:
        count, left = span.widened + 1, span.start > 0 and span.first > 0
        right = span.stop < len(self.before) and span.last < len(self.after)
        if left and (count % 2 or not right):
            return replace(span, start=span.start - 1, first=span.first - 1, widened=count)
        return replace(span, stop=span.stop + 1, last=span.last + 1, widened=count) if right else span


def change_of(link: Link) -> Change:
    """Compare the two names of a link; a span always has parts on both sides."""
    before, after = link.sources[0].parts, link.targets[0].parts
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    change = Change(link, tuple(Span(*code[1:]) for code in codes if code[0] != "equal"))
    spans = [
        change._wider(span) if span.start == span.stop or span.first == span.last else span for span in change.spans
    ]
    return replace(change, spans=_joined(spans))


def _joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Make one of spans that touch."""
    found: list[Span] = []
    for span in spans:
        if found and (span.start <= found[-1].stop or span.first <= found[-1].last):
            found[-1] = replace(found[-1], stop=max(span.stop, found[-1].stop), last=max(span.last, found[-1].last))
        else:
            found.append(span)
    return tuple(found)
