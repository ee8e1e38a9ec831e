"""Groups of two plans that hang together, as one group."""

from __future__ import annotations

from collections.abc import Sequence

from weightloom.engine.planning.groups import Group
from weightloom.engine.spec import TensorSpec
from weightloom.engine.views.moves import Reorder, Specs
from weightloom.engine.views.program import Program, Step, widened

Key = tuple[str, str | int]
Slots = dict[Key, TensorSpec]


def joined(left: Sequence[Group], right: Sequence[Group]) -> Group:
    """Run the left groups side by side, put their results in order, run the right ones side by side.

    A remainder of the left feeds a filler of the right that is alike: what one plan leaves over, the other puts back.
    What the left makes and the right has no use for is a remainder of the whole.
    """
    taken, between = _slots(left, "source", "left filler", out=False), _slots(left, "between", "left over", out=True)
    wanted, made = _slots(right, "between", "right filler", out=False), _slots(right, "target", "right over", out=True)
    fed = _fed(between, wanted)
    fillers = {key: spec for key, spec in wanted.items() if key[0] == "right filler" and key not in fed}
    over = {key: spec for key, spec in between.items() if key not in wanted and key not in fed.values()}
    before = _beside([group.program for group in left]).beside(Program(tuple(fillers.values())))
    after = _beside([group.program for group in right]).beside(Program(tuple(over.values())))
    first = _first_the("source", {**taken, **fillers})
    last = _first_the("target", {**made, **over})
    program = (
        _ordered(first, [*taken, *fillers])
        .then(before)
        .then(_ordered({**between, **fillers}, [*(fed.get(key, key) for key in wanted), *over]))
        .then(after)
        .then(_ordered({**made, **over}, list(last)))
    )
    rule = next((group.rule for group in (*right, *left) if group.rule is not None), None)
    return Group(rule, _names("source", taken), _names("target", made), program)


def _slots(groups: Sequence[Group], kind: str, extra: str, *, out: bool) -> Slots:
    """Give the slots on one side of groups that stand side by side: by name, and by number what has no name."""
    found: Slots = {}
    for group in groups:
        names = group.targets if out else group.sources
        specs = group.program.out_specs if out else group.program.in_specs
        for number, spec in enumerate(specs):
            key: Key = (kind, names[number]) if number < len(names) else (extra, len(found))
            found[key] = spec
    return found


def _fed(between: Slots, wanted: Slots) -> dict[Key, Key]:
    """Pair each filler with the first remainder of its kind that is left."""
    left = [key for key in between if key[0] == "left over"]
    fed: dict[Key, Key] = {}
    for key, spec in wanted.items():
        alike = next((other for other in left if between[other] == spec), None)
        if key[0] == "right filler" and alike is not None:
            fed[key] = alike
            left.remove(alike)
    return fed


def _first_the(kind: str, slots: Slots) -> Slots:
    return dict(sorted(slots.items(), key=lambda item: item[0][0] != kind))


def _ordered(slots: Slots, wanted: Sequence[Key]) -> Program:
    """Give the program that puts the slots into the wanted order."""
    places = {key: place for place, key in enumerate(slots)}
    order = tuple(places[key] for key in wanted)
    specs: Specs = tuple(slots.values())
    return Program(specs, () if order == tuple(range(len(order))) else (Reorder(order),))


def _beside(programs: Sequence[Program]) -> Program:
    """Run programs side by side; there may be hundreds, so each step is put in its place once."""
    waiting = sum(len(program.in_specs) for program in programs)
    done, steps = 0, list[Step]()
    for program in programs:
        waiting -= len(program.in_specs)
        steps += [widened(step, done, waiting) for step in program.moves]
        done += len(program.out_specs)
    return Program(tuple(spec for program in programs for spec in program.in_specs), tuple(steps))


def _names(kind: str, slots: Slots) -> tuple[str, ...]:
    return tuple(str(name) for each, name in slots if each == kind)
