"""Read YAML text into nodes: the plain part of YAML only, with limits on size and depth.

Anchors, aliases, tags, several documents and keys that are not text are refused: a rule file is data that may
come from anyone, and a reader should find what it says where it says it.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from weightloom.rules.nodes import Entry, List, Node, Scalar, Table
from weightloom.rules.problems import Mark, Problems
from weightloom.rules.scalars import Ambiguous, plain_value

MAX_BYTES = 1 << 20
MAX_DEPTH = 20
_START = Mark(1, 1)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(data: bytes, problems: Problems) -> Node:
    """Give the one document of a YAML text; raises RuleFileError where it cannot be read at all.

    What can be read but is refused (a duplicate key, an ambiguous scalar, ...) is added to `problems`.
    """
    if len(data) > MAX_BYTES:
        raise problems.stop(_START, f"a rule file of {len(data)} bytes", expected=f"at most {MAX_BYTES} bytes")
    reader = _Reader(_decoded(data, problems), problems)
    return reader.document()


def _decoded(data: bytes, problems: Problems) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        raise problems.stop(
            _mark_after(before), f"byte {data[error.start]:#04x} is not UTF-8", expected="a file in UTF-8"
        ) from error


def _mark_after(text: str) -> Mark:
    return Mark(text.count("\n") + 1, len(text) - text.rfind("\n"))


class _Reader:
    """Walks the events of one text once; lives only while it is read."""

    def __init__(self, text: str, problems: Problems) -> None:
        self.text = text
        self.problems = problems
        self.events = self._events()

    def document(self) -> Node:
        """Read the one document."""
        event = next(self.events)
        while isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
            event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            raise self.problems.stop(_START, "an empty file", expected="a mapping")
        node = self._node(event, 0)
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise self.problems.stop(_mark(event), "a second document", expected="one document a file")
        return node

    def _events(self) -> Iterator[yaml.Event]:
        try:
            yield from yaml.parse(self.text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = _START if mark is None else Mark(mark.line + 1, mark.column + 1)
            said = " ".join(str(part) for part in (error.context, error.problem) if part)
            raise self.problems.stop(
                place, f"not YAML: {said}", hint="put patterns in single quotes: '*.weight'"
            ) from error
        except yaml.YAMLError as error:
            mark_here = _mark_after(self.text[: getattr(error, "position", 0)])
            raise self.problems.stop(mark_here, "not YAML: a character that YAML does not allow") from error
        except (ValueError, OverflowError) as error:  # an escape for no character, in the library without C
            raise self.problems.stop(_START, "not YAML: an escape that stands for no character") from error

    def _node(self, event: yaml.Event, depth: int) -> Node:
        at = _mark(event)
        if depth >= MAX_DEPTH and not isinstance(event, yaml.ScalarEvent):
            raise self.problems.stop(at, f"nested more than {MAX_DEPTH} deep", expected="the form in schema.json")
        self._refuse_extras(event, at)
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(at, self._value(event, at))
        if isinstance(event, yaml.SequenceStartEvent):
            return List(at, tuple(self._items(depth + 1)))
        if isinstance(event, yaml.MappingStartEvent):
            return Table(at, tuple(self._entries(depth + 1)))
        return Scalar(at, None)

    def _items(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            yield self._node(event, depth)

    def _entries(self, depth: int) -> Iterator[Entry]:
        seen: dict[str, Mark] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._node(event, depth)
            value = self._node(next(self.events), depth)
            if not isinstance(key, Scalar) or not isinstance(key.value, str):
                what = repr(key.value) if isinstance(key, Scalar) else key.kind
                self.problems.add(key.at, f"the key {what} is not text", expected="a word", code="WL001")
            elif key.value in seen:
                first = seen[key.value]
                self.problems.add(
                    key.at,
                    f"the key {key.value!r} stands twice",
                    expected=f"one of them; the first is in line {first.line}",
                    code="WL001",
                )
            else:
                seen[key.value] = key.at
                yield Entry(key.at, key.value, value)

    def _value(self, event: yaml.ScalarEvent, at: Mark) -> str | int | float | bool | None:
        if any("\ud800" <= character <= "\udfff" for character in event.value):
            self.problems.add(at, "half a character", expected="whole characters, not surrogates", code="WL001")
            return ""
        if event.style:
            return str(event.value)
        try:
            return plain_value(event.value)
        except Ambiguous:
            self.problems.add(
                at,
                f"unquoted {event.value!r} means different things to different readers of YAML",
                expected=f"'{event.value}' in quotes for text; true, false, 10 or 1.0e-5 for a value",
                code="WL001",
            )
            return str(event.value)

    def _refuse_extras(self, event: yaml.Event, at: Mark) -> None:
        if isinstance(event, yaml.AliasEvent):
            what = f"the alias *{event.anchor}"
        elif getattr(event, "anchor", None):
            what = f"the anchor &{event.anchor}"  # type: ignore[attr-defined]
        elif getattr(event, "tag", None):
            what = f"the tag {event.tag}"  # type: ignore[attr-defined]
        else:
            return
        self.problems.add(
            at,
            what,
            expected="plain data, without anchors, aliases and tags",
            hint="put patterns in single quotes: '*.weight'; write shared rules once and use `extends`",
            code="WL001",
        )


def _mark(event: yaml.Event) -> Mark:
    start = event.start_mark
    return _START if start is None else Mark(start.line + 1, start.column + 1)
