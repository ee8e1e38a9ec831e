"""What is to know of a conversion that keeps nothing beside the weights: what is lost, rounded, or stays as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from weightloom.engine.codings.loss import Loss
from weightloom.engine.mapping.claims import Absent
from weightloom.engine.plan import Plan
from weightloom.engine.reading.recoding import recodes, recodings
from weightloom.engine.saving.remainders import left_over
from weightloom.engine.show import listed
from weightloom.runtime.choosing.choice import Choice
from weightloom.runtime.configs.config import NAME
from weightloom.runtime.opening.kept import Kept
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT
from weightloom.runtime.opening.opening import GGUF, Opened
from weightloom.runtime.saving.order import Order


def notes_on(plan: Plan, opened: Opened, choice: Choice, order: Order) -> Iterator[str]:
    """Yield a line for each rule that leaves something out or rounds, and for what stays packed.

    What is coded anew is measured: its tensors are read once more.
    """
    yield from _left_out(plan)
    yield from (f"not in this layout: {text}" for text in left_over(plan))
    yield from _rounded(plan)
    yield from _coded_anew(plan)
    yield from _lacking(opened, choice)
    if order.layout == DEFAULT_LAYOUT and opened.layout != GGUF and order.quantizing is None:
        yield from _packed(opened)


def notes_on_way_back(kept: Kept) -> Iterator[str]:
    """Say that what was changed in the config beside the weights is not in the source's own, which is written."""
    if kept.config is not None and not kept.current:
        yield (
            f"{NAME} was changed since the weights were written: what is written is the source's own, without the "
            f"change; remove {kept.path.name} to go by the changed one"
        )


def _left_out(plan: Plan) -> Iterator[str]:
    """Say which parameters the layout that is written has no room for, rule by rule."""
    counts = Counter((record.rule, record.why) for record in plan.report.absent)
    yield from (f"not in this layout: {count} parameters: {why} [{rule}]" for (rule, why), count in counts.items())


def _rounded(plan: Plan) -> Iterator[str]:
    """Say which tensors are computed and rounded, where what leads to them exactly was not kept."""
    found: dict[str, list[str]] = {}
    for group in plan.groups:
        if group.program.rounds:
            title = group.rule.title() if group.rule else "a value step"
            found.setdefault(title, []).extend(group.targets)
    yield from (f"computed and rounded: {listed(sorted(names), 4)} [{title}]" for title, names in sorted(found.items()))


def _coded_anew(plan: Plan) -> Iterator[str]:
    """Say how far what is coded anew is from what the files hold."""
    count = recodes(plan)
    if count:
        losses = [found.loss for found in recodings(plan)]
        whole, most = sum(losses, Loss()), max(losses, key=lambda loss: loss.relative)
        yield (
            f"coded anew: {count} tensors, off by {100 * whole.relative:.2g} % of their size, "
            f"{100 * most.relative:.2g} % at most of one"
        )


def _lacking(opened: Opened, choice: Choice) -> Iterator[str]:
    """Say which parameters the layout that is read has no room for, where none were kept beside it."""
    config = choice.config.values if choice.config else {}
    for rule in () if opened.kept is not None else choice.rules():
        if isinstance(rule, Absent) and rule.applies(config, opened.checkpoint.metadata):
            names = ", ".join(rule.source_patterns)
            yield f"no parameters of {names} in the {choice.layout} form: {rule.why} [{rule.title()}]"


def _packed(opened: Opened) -> Iterator[str]:
    """Say that modules stay quantized as MLX packs them."""
    tensors = opened.checkpoint.tensors
    weights = (name.removesuffix("scales") + "weight" for name in tensors if name.endswith(".scales"))
    count = sum(name in tensors and tensors[name].dtype == "U32" for name in weights)
    if count:
        yield f"{count} modules stay packed as MLX quantizes them, which other readers of published files do not know"
