"""One item of a layout's rule list becomes one rule of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from weightloom.engine.errors import WeightloomError
from weightloom.engine.mapping.claims import Absent, Drop, KeepDtype, Tie
from weightloom.engine.mapping.converter import WeightConverter
from weightloom.engine.mapping.drop_layers import DropLayers
from weightloom.engine.mapping.index_map import IndexMap
from weightloom.engine.mapping.layer_renaming import LayerRenaming
from weightloom.engine.mapping.prefix import PrefixChange
from weightloom.engine.mapping.rename_group import RenameGroup
from weightloom.engine.mapping.renaming import WeightRenaming
from weightloom.engine.mapping.rule import Fidelity, Place, Rule
from weightloom.engine.ops.base import ConversionOp
from weightloom.rules.document import RuleItem
from weightloom.rules.linting.references import uncaptured
from weightloom.rules.nodes import List, Node, Scalar, Table, plain, show, texts
from weightloom.rules.op_table import Ops
from weightloom.rules.problems import Mark, Problems
from weightloom.rules.reading import choice, entries, fields, pattern, patterns, truth
from weightloom.rules.reading import text as read_text

OPTIONS = ("why", "when", "fidelity", "always", "optional")
Options = dict[str, Any]


def read_item(node: Node, ops: Ops, problems: Problems) -> RuleItem | None:
    """Read one rule; None where it cannot be made, with the reason in `problems`."""
    found = entries(node, "a rule", problems, optional=(*FORMS, *OPTIONS))
    kinds = [key for key in found if key in FORMS]
    if len(kinds) != 1:
        if isinstance(node, Table):
            seen = f"a rule with {' and '.join(kinds)}" if kinds else "a rule that says nothing"
            problems.add(node.at, seen, expected=f"exactly one of {', '.join(FORMS)}")
        return None
    kind = kinds[0]
    before = len(problems.found)
    options = _options({key: entry.value for key, entry in found.items()}, kind, problems)
    value = found[kind].value
    make = FORMS[kind](value, options | {"place": Place(problems.file, node.at.line, node.at.column)}, ops, problems)
    if make is None or len(problems.found) > before:
        return None
    rule = _made(make, node, value, problems)
    marks = dict(reversed(list(texts(node))))
    return None if rule is None else RuleItem(rule, node.at, marks)


Make = Callable[[], Rule]
Form = Callable[[Node, Options, Ops, Problems], Make | None]


def _made(make: Make, item: Node, value: Node, problems: Problems) -> Rule | None:
    try:
        return make()
    except WeightloomError as error:
        lacking = uncaptured(plain(value))
        problems.add(
            _place_of(error, item, value),
            error.seen,
            expected=error.expected,
            hint=error.hint,
            code="WL103" if lacking else "WL003",
            field=error.field,
        )
        return None


def _place_of(error: WeightloomError, item: Node, value: Node) -> Mark:
    """Where the text stands that an error names; else where the rule's own value does."""
    named = [(text, at) for text, at in texts(item) if text and (text == error.rule or repr(text) in error.seen)]
    return max(named, key=lambda each: len(each[0]))[1] if named else value.at


def _options(found: Mapping[str, Node], kind: str, problems: Problems) -> Options:
    """Read what all rules share."""
    when = read_text(found.get("when"), "when", problems)
    always = truth(found.get("always"), "always", problems)
    fidelity = choice(found.get("fidelity"), "fidelity", problems, get_args(Fidelity))
    options: Options = {"why": read_text(found.get("why"), "why", problems) or ""}
    options |= {} if when is None else {"when": when}
    options |= {} if always is None else {"always": always}
    options |= {} if fidelity is None else {"fidelity": fidelity}
    return options | _optional(found.get("optional"), kind, problems)


def _optional(node: Node | None, kind: str, problems: Problems) -> Options:
    if node is None:
        return {}
    if kind != "convert":
        problems.add(node.at, f"optional beside {kind}", expected="optional beside convert only", field="optional")
    if isinstance(node, Scalar) and isinstance(node.value, bool):
        return {"optional": node.value}
    return {"optional": patterns(node, "optional", problems)}


def _rename(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    found = fields(node, "rename", problems, required=("from", "to"), optional=("layers",))
    sources = patterns(found.get("from"), "from", problems)
    target, layers = pattern(found.get("to"), "to", problems), read_text(found.get("layers"), "layers", problems)
    if target is None:
        return None
    if layers is not None:
        return lambda: LayerRenaming(sources, target, layers, **options)
    return lambda: WeightRenaming(sources, target, **options)


def _prefix(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    found = fields(node, "prefix", problems, optional=("add", "remove", "below"))
    if isinstance(node, Table) and ("add" in found) == ("remove" in found):
        problems.add(node.at, "prefix needs one of add and remove", expected="{add: x} or {remove: x}")
    add, remove, below = (pattern(found.get(key), key, problems) for key in ("add", "remove", "below"))
    return lambda: PrefixChange(add, remove, below, **options)


def _group(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    if not isinstance(node, List) or not node.items:
        problems.add(node.at, f"group is {show(node)}", expected="a list of {from: a, to: b}")
        return None
    pairs = [fields(item, "a rename of a group", problems, required=("from", "to")) for item in node.items]
    sources = [pattern(pair.get("from"), "from", problems) or "" for pair in pairs]
    targets = [pattern(pair.get("to"), "to", problems) or "" for pair in pairs]
    return lambda: RenameGroup(sources, targets, **options)


def _index(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    found = fields(node, "index", problems, required=("from", "to"))
    source, target = pattern(found.get("from"), "from", problems), pattern(found.get("to"), "to", problems)
    return lambda: IndexMap(source or "", target or "", **options)


def _drop(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    picked = patterns(node, "drop", problems)
    return lambda: Drop(picked, **options)


def _drop_layers(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    found = fields(node, "drop_layers", problems, required=("below", "first", "count"), optional=("parts",))
    layers, parts = (pattern(found.get(key), key, problems) or "" for key in ("below", "parts"))
    first, count = (read_text(found.get(key), key, problems) or "" for key in ("first", "count"))
    return lambda: DropLayers(layers, first, count, parts, **options)


def _keep_dtype(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    picked = patterns(node, "keep_dtype", problems)
    return lambda: KeepDtype(picked, **options)


def _absent(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    picked = patterns(node, "absent", problems)
    return lambda: Absent(picked, **options)


def _tie(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    found = fields(node, "tie", problems, required=("parameter", "source"))
    ends = [pattern(found.get(key), key, problems) or "" for key in ("parameter", "source")]
    return lambda: Tie(ends[0], ends[1], **options)


def _convert(node: Node, options: Options, ops: Ops, problems: Problems) -> Make | None:
    found = fields(node, "convert", problems, required=("from", "to", "ops"))
    sources = patterns(found.get("from"), "from", problems)
    targets = patterns(found.get("to"), "to", problems)
    made = _operations(found.get("ops"), ops, problems)
    return lambda: WeightConverter(sources, targets, made, **options)


def _operations(node: Node | None, ops: Ops, problems: Problems) -> tuple[ConversionOp, ...]:
    if node is None:
        return ()
    if not isinstance(node, List) or not node.items:
        problems.add(node.at, f"ops is {show(node)}", expected="a list of ops, as {Chunk: {dim: 0}}", field="ops")
        return ()
    made = (_operation(item, ops, problems) for item in node.items)
    return tuple(op for op in made if op is not None)


def _operation(node: Node, ops: Ops, problems: Problems) -> ConversionOp | None:
    if not isinstance(node, Table) or len(node.entries) != 1 or not isinstance(node.entries[0].value, Table):
        problems.add(node.at, f"an op is {show(node)}", expected="its name with its arguments: {Chunk: {dim: 0}}")
        return None
    entry, arguments = node.entries[0], node.entries[0].value.entries
    try:
        return ops.make(entry.key, {arg.key: plain(arg.value) for arg in arguments})
    except WeightloomError as error:
        at = next((arg.at for arg in arguments if arg.key == error.field), entry.at)
        problems.add(at, error.seen, expected=error.expected, hint=error.hint, code="WL003", field=error.field)
        return None


FORMS: Mapping[str, Form] = {
    "rename": _rename,
    "prefix": _prefix,
    "group": _group,
    "index": _index,
    "drop": _drop,
    "drop_layers": _drop_layers,
    "tie": _tie,
    "keep_dtype": _keep_dtype,
    "absent": _absent,
    "convert": _convert,
}
