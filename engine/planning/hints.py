"""What probably went wrong, said beside what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weightloom.engine.mapping.claims import Tie
from weightloom.engine.mapping.shapes import shape_text, shape_texts
from weightloom.engine.natural import natural
from weightloom.engine.planning.report import LoadReport, by_layer
from weightloom.engine.spec import TensorSpec

_SEVERAL = 2


def hints(
    report: LoadReport,
    params: Mapping[str, TensorSpec] | None,
    asleep: Sequence[Tie],
    config: Mapping[str, Any],
    tensors: int,
) -> tuple[str, ...]:
    """Give likely causes of what the report has missing and unexpected, of so many tensors in all."""
    if params is None:
        return ()
    wanted = tensors - len(report.dropped)
    return (
        *(tuple(_prefixes(report, wanted)) or _strange_start(report, params, wanted)),
        *_other_layers(report, params),
        *_sleeping_ties(report, asleep, config),
    )


def _prefixes(report: LoadReport, tensors: int) -> Iterator[str]:
    """A first part of all names that only has to be put on, taken off or exchanged."""
    unexpected, missing = report.unexpected, set(report.missing)
    if not unexpected or not missing:
        return
    olds = ["", *_common_starts(unexpected)]
    news = ["", *_common_starts(report.missing)]
    ranked = [
        (
            sum(new + name.removeprefix(old) in missing for name in unexpected if name.startswith(old)),
            old,
            new,
        )
        for old in olds
        for new in news
        if old != new
    ]
    none = (0, "", "")
    count, old, new = max(ranked, key=lambda item: (item[0], -len(item[1]) - len(item[2])), default=none)
    if old != new and 2 * count >= len(unexpected):
        change = f"prefix {old or '(none)'} -> {new or '(none)'}"
        matched = tensors - len(unexpected) + count
        yield f"{change} would match {matched} of {tensors} names"


def _strange_start(report: LoadReport, params: Mapping[str, TensorSpec], tensors: int) -> Iterator[str]:
    """A first part that all tensors have and no parameter: behind it rules may match."""
    starts = {name.split(".", 1)[0] + "." for name in report.unexpected}
    if tensors < _SEVERAL or len(report.unexpected) < tensors or len(starts) > 1:
        return
    (start,) = starts
    if not any(name.startswith(start) for name in params):
        yield f"all {tensors} names begin with {start}, and no parameter does: prefix {start} -> (none) may help"


def _common_starts(names: Sequence[str]) -> list[str]:
    starts = Counter(name.split(".", 1)[0] + "." for name in names if "." in name)
    pairs = Counter(".".join(name.split(".", 2)[:2]) + "." for name in names if name.count(".") > 1)
    return [start for start, _ in [*starts.most_common(3), *pairs.most_common(3)]]


def _other_layers(report: LoadReport, params: Mapping[str, TensorSpec]) -> Iterator[str]:
    """Names whose shape of name is a parameter's, only with other numbers."""
    numbered = [name for name in report.unexpected if "*" in shape_text(name)]
    known = shape_texts(params) if numbered else ()
    strangers = [name for name in numbered if shape_text(name) in known]
    if strangers:
        layers = sorted(by_layer(strangers).items(), key=lambda item: natural(item[0]))
        shown = "; ".join(_layer_text(layer, names) for layer, names in layers[:3])
        more = f"; and {len(layers) - 3} more" if len(layers) > 3 else ""
        yield (
            f"{len(strangers)} unexpected names are parameters of other layers ({shown}{more}): the config has fewer "
            "layers than the file, or layers share these tensors (then a `drop` rule leaves them out)"
        )


def _layer_text(layer: str, names: Sequence[str]) -> str:
    parts = [name.removeprefix(f"{layer}.") for name in sorted(names)]
    shown = ", ".join(parts[:4])
    return f"{layer}: {shown}" if len(parts) <= 4 else f"{layer}: {shown}, ... ({len(parts)})"


def _sleeping_ties(report: LoadReport, asleep: Sequence[Tie], config: Mapping[str, Any]) -> Iterator[str]:
    """A missing parameter that a tie would give, were its condition met."""
    for name in report.missing:
        for rule in asleep:
            other = rule.other_end(name)
            if other is not None and rule.when is not None:
                seen = {field: config.get(field) for field in rule.when.names}
                yield (
                    f"{name} would share {other}, but {rule.when.text!r} is not true ({seen}): "
                    "set it in the config, or supply the tensor"
                )
