"""What probably went wrong, said beside what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weightloom.engine.mapping.claims import Tie
from weightloom.engine.planning.hinting.layers import layer_hints
from weightloom.engine.planning.hinting.mismatches import mismatch_hints
from weightloom.engine.planning.hinting.names import near_names
from weightloom.engine.planning.hinting.prefix import Trial, prefix_hint
from weightloom.engine.planning.report import LoadReport
from weightloom.engine.show import shown
from weightloom.engine.spec import TensorSpec


def hints(
    report: LoadReport,
    params: Mapping[str, TensorSpec] | None,
    asleep: Sequence[Tie],
    config: Mapping[str, Any],
    trial: Trial,
) -> tuple[str, ...]:
    """Give likely causes of what the report has missing and unexpected; `trial` plans anew under another prefix."""
    if params is None or not (report.missing or report.unexpected or report.mismatched):
        return ()
    prefix = prefix_hint(report, trial)
    if prefix is not None:
        return (prefix,)
    return (
        *mismatch_hints(report),
        *layer_hints(report, params, config),
        *near_names(report),
        *_sleeping_ties(report, asleep, config),
    )


def _sleeping_ties(report: LoadReport, asleep: Sequence[Tie], config: Mapping[str, Any]) -> Iterator[str]:
    """A missing parameter that a tie would give, were its condition met."""
    for name in report.missing:
        for rule in asleep:
            other = rule.other_end(name)
            if other is not None and rule.when is not None:
                said = ", ".join(f"{field} = {shown(value)}" for field, value in rule.when.fields(config).items())
                yield (
                    f"{name} would share {other}, but {rule.when.text!r} is not true (the config has "
                    f"{said or 'it not'}): set it in the config, or supply the tensor"
                )
