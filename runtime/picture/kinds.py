"""What kind of thread a group is: what becomes of its tensors, in a word."""

from __future__ import annotations

from weightloom.engine.planning.groups import Group

# In the order of the legend; what does not fit comes first, so that it is drawn first.
KINDS = {
    "unexpected": "on disk, and nothing takes it",
    "missing": "a parameter that nothing on disk leads to",
    "mismatched": "reaches a parameter that it does not fit",
    "incomplete": "a group of which something is lacking",
    "ambiguous": "claimed twice",
    "same": "as it is, under its own name",
    "renamed": "as it is, under another name",
    "reordered": "transposed, permuted or reshaped",
    "stacked": "several as one, along a new axis",
    "joined": "several as one, end to end",
    "split": "one as several",
    "recoded": "values or packing changed: dequantized, cast, scaled",
    "chained": "several ops, one after the other",
    "tied": "shares the tensor of another parameter",
    "dropped": "not a parameter; kept, and saved back",
}
PROBLEMS = ("unexpected", "missing", "mismatched", "incomplete", "ambiguous")


def kind_of(group: Group) -> str:
    """Name what a group does; ops that are several are `chained`, whatever each of them does."""
    program = group.program
    if len(getattr(group.rule, "operations", ())) > 1:
        return "chained"
    if not program.is_structural:
        return "recoded"
    if len(group.sources) != len(group.targets):
        return _count_changes(group)
    if program.moves and not program.is_identity:
        return "reordered"
    return "same" if group.sources == group.targets else "renamed"


def _count_changes(group: Group) -> str:
    if len(group.sources) < len(group.targets):
        return "split"
    before, after = group.program.in_specs[0].shape, group.program.out_specs[0].shape
    return "stacked" if len(after) > len(before) else "joined"
