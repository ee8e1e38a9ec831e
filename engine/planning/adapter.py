"""plan_adapter: an adapter's files to the factors of changes of a model's parameters, by the model's own rules.

The result is a plan as any other: it is printed, checked, loaded, and inverted, so that an adapter goes back to the
names and the shapes that it came in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weightloom.engine.errors import PlanError, UsageError
from weightloom.engine.mapping.renaming import WeightRenaming
from weightloom.engine.mapping.rule import Rule
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.engine.plan import Plan
from weightloom.engine.planning.build import build_plan
from weightloom.engine.planning.lifting import COLUMNS, KINDS, ROWS, WHOLE, A, B, adapter_rules
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    from weightloom.engine.checkpoints.checkpoint import Checkpoint

_MATRIX = 2


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one parameter, `parameter + scale * b @ a`: where its factors are among a plan's parameters.

    `a` is (..., rank, columns) and `b` (..., rows, rank). `parts` are the factors of the adapter that it was put
    together from: A's name in the file, and its rank. With `magnitude`, (..., rows) or by columns (..., columns), the
    sum's rows (columns) are brought to these lengths.
    """

    parameter: str
    a: str
    b: str
    rank: int
    parts: tuple[tuple[str, int], ...]
    magnitude: str | None = None

    @property
    def by_columns(self) -> bool:
        """Whether the magnitudes are lengths of columns."""
        return self.magnitude is not None and self.magnitude.startswith(f"{COLUMNS}.")

    def alpha(self, scales: Mapping[str, float]) -> float:
        """Give the alpha with which `alpha / rank` is the scale that all parts have; `scales` by A's name in the file.

        Raises PlanError, naming two parts, where their scales differ, and UsageError for a part without a scale.
        """
        first, *others = [name for name, _ in self.parts]
        lacking = [name for name in (first, *others) if name not in scales]
        if lacking:
            raise UsageError(
                f"no scale for {lacking[0]}, and for {len(lacking) - 1} others, which change {self.parameter}",
                expected="a scale for each of `parts`, by its name",
                hint="lora_alpha / rank is that of PEFT, where no pattern says otherwise",
                tensor=lacking[0],
            )
        for name in others:
            if scales[name] != scales[first]:
                raise PlanError(
                    f"{first} has scale {scales[first]} and {name} has scale {scales[name]}, and both change "
                    f"{self.parameter}",
                    expected="one scale for all that become one",
                    hint="multiply each B by its scale, and give all of them scale 1",
                    tensor=name,
                )
        return scales[first] * self.rank


def plan_adapter(
    ckpt: Checkpoint,
    names: RuleSet | Sequence[Rule],
    rules: RuleSet | Sequence[Rule],
    params: Mapping[str, TensorSpec] | None = None,
    *,
    config: Mapping[str, Any] | None = None,
) -> Plan:
    """Map an adapter's tensors to factors (`lora_A.` and `lora_B.`) and replacements (`whole.`) of parameters.

    So magnitudes: `lora_magnitude.` of rows, `lora_column_magnitude.` of columns.

    `names` puts the file's names into the form that `adapter_rules` says; `rules` are those of the model that the
    adapter was made for, as it is published; `params` and `config` are the model's. With `params`, what leads to no
    parameter is unexpected, a factor without the other missing, and one of the wrong size mismatched. An adapter of
    the base model fits the model with its head, and the other way round.
    """
    lifted = adapter_rules(rules)
    if params is None:
        return build_plan(ckpt, RuleSet((*names, *lifted)), config=config)
    every = {f"{kind}.{name}": spec for name, spec in params.items() for kind in KINDS}
    base = rules.base_model_prefix if isinstance(rules, RuleSet) else ""
    ways = [RuleSet((*names, *moved, *lifted)) for moved in _to_base(base)]
    drafts = ((way, build_plan(ckpt, way, every, config=config)) for way in ways)
    way, expected = next(((way, wanted) for way, d in drafts if (wanted := _expected(d, every))), (ways[0], {}))
    return build_plan(ckpt, way, expected, config=config)


def _to_base(base: str) -> Iterator[tuple[Rule, ...]]:
    """Names as they are; with the base model's prefix, and without: an adapter may be of either model."""
    yield ()
    if base:
        yield tuple(WeightRenaming(rf"^{kind}\.", f"^{kind}.{base}.") for kind in KINDS)
        yield tuple(WeightRenaming(rf"^{kind}\.{re.escape(base)}\.", f"^{kind}.") for kind in KINDS)


def changes(plan: Plan) -> tuple[Change, ...]:
    """List the changes of low rank that a plan of an adapter makes, by parameter; PlanError for a lone factor."""
    found = sorted(name.split(".", 1)[1] for name in plan.params if name.startswith((f"{A}.", f"{B}.")))
    return tuple(_change(plan, name) for name in dict.fromkeys(found))


def _change(plan: Plan, parameter: str) -> Change:
    a, b = f"{A}.{parameter}", f"{B}.{parameter}"
    lone = next((name for name in (a, b) if name not in plan.params), None)
    if lone is not None:
        raise PlanError(f"{parameter} is changed by one factor alone", expected=f"{lone} too", tensor=parameter)
    one, other = plan.params[a].shape, plan.params[b].shape
    if min(len(one), len(other)) < _MATRIX or one[-_MATRIX] != other[-1]:
        raise PlanError(
            f"the factors of {parameter} are {list(one)} and {list(other)}",
            expected="A (..., rank, columns) and B (..., rows, rank), of one rank",
            tensor=parameter,
        )
    parts = tuple((name, spec.shape[-_MATRIX]) for name, spec in plan.by_target[a].taken)
    magnitude = next((name for kind in (ROWS, COLUMNS) if (name := f"{kind}.{parameter}") in plan.params), None)
    return Change(parameter, a, b, one[-_MATRIX], parts, magnitude)


def _expected(draft: Plan, every: Mapping[str, TensorSpec]) -> dict[str, TensorSpec]:
    """Give what the parameters that an adapter reaches have to be, now that ranks are known."""
    return dict(_expectations(draft, every))


def _expectations(draft: Plan, every: Mapping[str, TensorSpec]) -> Iterator[tuple[str, TensorSpec]]:
    reached = _reached(draft) & every.keys()
    for name in sorted(reached):
        kind, parameter = name.split(".", 1)
        shape = every[name].shape
        if kind == WHOLE:
            yield name, TensorSpec(None, shape)
        elif len(shape) >= _MATRIX and kind in (A, B):
            rank = _rank(draft, parameter)
            yield f"{A}.{parameter}", TensorSpec(None, (*shape[:-_MATRIX], rank, shape[-1]))
            yield f"{B}.{parameter}", TensorSpec(None, (*shape[:-1], rank))
        # Without a factor it is nothing that could be completed: it leads nowhere.
        elif len(shape) >= _MATRIX and not reached.isdisjoint((f"{A}.{parameter}", f"{B}.{parameter}")):
            yield name, TensorSpec(None, shape[:-1] if kind == ROWS else (*shape[:-_MATRIX], shape[-1]))


def _reached(draft: Plan) -> set[str]:
    report = draft.report
    lacking = (name for record in report.incomplete for name in record.parameters)
    unfit = (record.parameter for record in report.mismatched)
    contested = (record.name for record in report.ambiguous)
    return {*draft.by_target, *lacking, *unfit, *contested}


def _rank(draft: Plan, parameter: str) -> int:
    """Give the rank that A has, else B; 0 where neither is a matrix."""
    for name, dim in ((f"{A}.{parameter}", -_MATRIX), (f"{B}.{parameter}", -1)):
        spec = draft.params.get(name)
        if spec is not None and len(spec.shape) >= _MATRIX:
            return spec.shape[dim]
    return 0
