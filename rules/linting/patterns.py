"""What can be wrong with one pattern, by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weightloom.rules.linting.regex_tree import (
    Atom,
    Element,
    Group,
    Repeat,
    Sequence,
    characters,
    consumes,
    first_characters,
    parse_pattern,
    walk,
)

Complaint = tuple[str, str]


def pattern_complaints(text: str) -> Iterator[Complaint]:
    """Yield (code, message) for each thing that is wrong with a source pattern."""
    tree = parse_pattern(text)
    yield from _bare_dots(tree, text)
    yield from _impossible(tree, text)
    yield from _explosive(tree, text)


def _bare_dots(tree: Group, text: str) -> Iterator[Complaint]:
    """A dot that is repeated is meant as any character; one that stands alone is meant as a dot."""
    repeated = {id(each.body) for each in walk(tree) if isinstance(each, Repeat)}
    bare = [e for e in walk(tree) if isinstance(e, Atom) and e.token.kind == "any" and id(e) not in repeated]
    if bare:
        places = ", ".join(str(each.token.at + 1) for each in bare)
        yield (
            "WL101",
            f"pattern '{text}': the dot at character {places} matches any character; write '\\.' for a dot",
        )


def _impossible(tree: Group, text: str) -> Iterator[Complaint]:
    for anchor, where, forwards in (("^", "begins", True), ("$", "ends", False)):
        if _is_blocked(tree, anchor, False, forwards):
            yield (
                "WL102",
                f"pattern '{text}' never matches: something stands {'before' if forwards else 'behind'} '{anchor}', "
                f"which is where a name {where}",
            )


def _is_blocked(element: Element, anchor: str, taken: bool, forwards: bool) -> bool:
    """Say whether an anchor stands where a character has been taken on its outer side."""
    if isinstance(element, Repeat):
        return element.least > 0 and _is_blocked(element.body, anchor, taken, forwards)
    if isinstance(element, Group):
        blocked = [_blocked_branch(branch, anchor, taken, forwards) for branch in element.branches]
        return not element.looks and all(blocked)
    return taken and element.token.kind == "anchor" and element.token.text == anchor


def _blocked_branch(branch: Sequence, anchor: str, taken: bool, forwards: bool) -> bool:
    for element in branch if forwards else reversed(branch):
        if _is_blocked(element, anchor, taken, forwards):
            return True
        taken = taken or consumes(element)
    return False


def _explosive(tree: Group, text: str) -> Iterator[Complaint]:
    checks: tuple[tuple[Callable[[Repeat], bool], str], ...] = (
        (_repeats_a_repeat, "a repetition inside a repetition"),
        (_repeats_an_overlap, "repeated alternatives that begin alike"),
    )
    loops = [each for each in walk(tree) if isinstance(each, Repeat) and each.most is None]
    for check, what in checks:
        if any(check(loop) for loop in loops):
            yield (
                "WL108",
                f"pattern '{text}' has {what}: on a long name it may try exponentially many ways",
            )


def _repeats_a_repeat(loop: Repeat) -> bool:
    """Two ways to share the same characters out, unless some other character must stand between two rounds."""
    if not isinstance(loop.body, Group):
        return False
    return any(_ambiguous(branch) for branch in loop.body.branches)


def _ambiguous(branch: Sequence) -> bool:
    inner = [e for element in branch for e in walk(element) if _endless(e)]
    fences = [characters(element) for element in branch if consumes(element) and not _holds_loop(element)]
    return any(all(fence & characters(loop) for fence in fences) for loop in inner)


def _holds_loop(element: Element) -> bool:
    return any(_endless(each) for each in walk(element))


def _endless(element: Element) -> bool:
    star = isinstance(element, Atom) and element.token.kind == "star"
    return star or (isinstance(element, Repeat) and element.most is None)


def _repeats_an_overlap(loop: Repeat) -> bool:
    if not isinstance(loop.body, Group):
        return False
    groups = [each for each in walk(loop.body) if isinstance(each, Group) and not each.looks]
    return any(_overlap(group) for group in groups)


def _overlap(group: Group) -> bool:
    firsts = [first_characters(branch) for branch in group.branches]
    return any(a & b for i, a in enumerate(firsts) for b in firsts[i + 1 :])
