"""The operations of a surgery file that prune: `{op: prune, granularity: layer, pattern: '**', layer_ids: [3]}`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from weightloom.engine.mapping.rule import Place
from weightloom.engine.surgery import Operation, PruneChannels, PruneHeads, PruneLayers
from weightloom.rules.nodes import Node, Table, plain, show
from weightloom.rules.problems import Problems
from weightloom.rules.reading import choice, fields
from weightloom.runtime.surgery.surgery_reader import SurgeryReader

PRUNE = "prune"
_KINDS: dict[str, tuple[Callable[..., Operation], str]] = {
    "layer": (PruneLayers, "layer_ids"),
    "attention_head": (PruneHeads, "head_ids"),
    "mlp_channel": (PruneChannels, "channel_ids"),
}


def read_pruning(node: Node, path: Path, problems: Problems) -> Operation | None:
    """Read one; another operation in its place is a problem, for what prunes comes last."""
    given = {entry.key: entry.value for entry in node.entries} if isinstance(node, Table) else {}
    if "op" not in given or plain(given["op"]) != PRUNE:
        said = show(given["op"]) if "op" in given else show(node)
        problems.add(node.at, f"{said} stands after a prune", expected="op: prune, or its place before all that prune")
        return None
    kind = given.get("granularity")
    chosen = None if kind is None else choice(kind, "granularity", problems, tuple(_KINDS))
    if kind is None:
        problems.add(
            node.at, "a prune lacks 'granularity'", expected=f"one of {', '.join(_KINDS)}", field="granularity"
        )
    if chosen not in _KINDS:
        return None
    make, key = _KINDS[chosen]
    read = SurgeryReader(path, problems)
    found = fields(node, f"a prune of {chosen}", problems, required=("op", "granularity", "pattern", key))
    pattern, ids = read.glob(found.get("pattern"), "pattern"), read.ids(found.get(key), key)
    return make(pattern, ids, place=Place(f"{path}:{node.at.line}", node.at.column))
