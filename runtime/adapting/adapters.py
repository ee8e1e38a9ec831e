"""Adapters on a loaded model: opened and checked first, put beside its parameters, and switched between calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine import RuleSet
from weightloom.engine.errors import UsageError
from weightloom.engine.planning.lifting import WHOLE
from weightloom.plugins.modules.adapters import attach, dense_weight, unchangeable, unpacked_specs
from weightloom.plugins.modules.exchange import Exchange, exchanges, refuse_packed
from weightloom.runtime.adapting.adapter_plan import DECOMPOSED, AdapterPlan, plan_on, refuse_unless_taken, unfit
from weightloom.runtime.adapting.adapter_source import open_adapter
from weightloom.runtime.adapting.wish import Weighted, checked_scale
from weightloom.runtime.choosing.rule_choice import model_rules

if TYPE_CHECKING:
    import mlx.core as mx
    import mlx.nn as nn

    from weightloom.plugins.architecture import Architecture
    from weightloom.plugins.layers.terms import Dial, Term


@dataclass(frozen=True, eq=False)
class ReadAdapter:
    """An adapter that fits a model: its plan, its factors by the plan's names, and the scale to begin with."""

    plan: AdapterPlan
    arrays: Mapping[str, mx.array]
    scale: float

    @property
    def notes(self) -> tuple[str, ...]:
        """What was set aside, and which adapter it is about."""
        return tuple(f"{self.plan.source.path}: {note}" for note in self.plan.notes)

    @property
    def whole(self) -> Mapping[str, mx.array]:
        """The arrays that replace parameters, by parameter."""
        found = {name: self.arrays.get(f"{WHOLE}.{name}") for name in self.plan.replaced}
        return {name: array for name, array in found.items() if array is not None}


class Adapters:
    """The adapters of a model by name, and the scale of each: 1 as it was trained, 0 as if it were not there.

    A scale holds from the next call of the model on. A tensor that an adapter has in place of the base's is there in
    full wherever the scale is not 0.
    """

    def __init__(
        self, read: Mapping[str, ReadAdapter], dials: Mapping[str, Dial], exchanges: Sequence[Exchange]
    ) -> None:
        self._read = dict(read)
        self._dials = dict(dials)
        self._exchanges = tuple(exchanges)
        self.set({})

    @property
    def scales(self) -> dict[str, float]:
        """The scale of each adapter now."""
        return {name: dial.scale for name, dial in self._dials.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the adapters, in their order."""
        return tuple(self._read)

    def read(self, name: str | None = None) -> ReadAdapter:
        """Give an adapter as it was read, by default the only one; raises UsageError for an unknown name."""
        chosen = next(iter(self._read)) if name is None and len(self._read) == 1 else name
        if chosen not in self._read:
            said = "no adapter is named, of several" if name is None else f"there is no adapter {name!r}"
            raise UsageError(said, expected=f"one of {', '.join(self._read)}", field="adapter")
        return self._read[chosen]

    def use(self, *names: str) -> None:
        """Let these act in full, and no others; with no name it is the base. Raises UsageError for an unknown one."""
        self._need(names)
        self.set({**dict.fromkeys(self._dials, 0.0), **dict.fromkeys(names, 1.0)})

    def set(self, scales: Mapping[str, float]) -> None:
        """Set the scale of some adapters by name.

        Raises UsageError, before any is set, for an unknown one, for what is no number, and where two would replace one
        parameter.
        """
        if not isinstance(scales, Mapping):
            raise UsageError(f"scales are {scales!r}", expected="a mapping of names to scales", field="adapter")
        self._need(scales)
        checked = {name: checked_scale(name, scale) for name, scale in scales.items()}
        for each in self._exchanges:
            each.chosen({**self.scales, **checked})
        for name, scale in checked.items():
            self._dials[name].scale = scale
        for each in self._exchanges:
            each.put(self.scales)

    def _need(self, names: Iterable[object]) -> None:
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise UsageError(
                f"there is no adapter {unknown[0]!r}", expected=f"one of {', '.join(self._dials)}", field="adapter"
            )


def read_adapters(
    pairs: Sequence[Weighted],
    architecture: Architecture,
    module: nn.Module,
    config: Mapping[str, Any],
    before: RuleSet | None = None,
) -> tuple[ReadAdapter, ...]:
    """Open, check and read adapters for a module that may have no arrays yet; it is not touched.

    Rules `before` the architecture's lead from the names of a whole to those of its text model.

    Raises UsageError where the architecture takes none, or an adapter replaces what is packed; PlanError listing all
    that does not fit, and as `open_adapter` and reading do.
    """
    if pairs:
        refuse_unless_taken(architecture)
    return tuple(_read(path, scale, architecture, module, config, before or RuleSet()) for path, scale in pairs)


def _read(
    path: Path,
    scale: float,
    architecture: Architecture,
    module: nn.Module,
    config: Mapping[str, Any],
    before: RuleSet,
) -> ReadAdapter:
    source = open_adapter(path)
    with closing(source.checkpoint):
        own = model_rules(architecture, config, source.layout)
        rules = RuleSet((*before, *own), own.base_model_prefix)
        plan = plan_on(source, rules, unpacked_specs(module), config)
        if any(each.magnitude is not None for each in plan.changes):
            refuse_unless_taken(architecture, DECOMPOSED)
        refused = unchangeable(module, [each.parameter for each in plan.changes])
        if refused:
            raise unfit(source, [f"no factors can be put beside {name}" for name in refused], refused[0])
        refuse_packed(module, plan.replaced, path)
        return ReadAdapter(plan, plan.plan.load(), scale)


def put_adapters(module: nn.Module, adapters: Sequence[ReadAdapter]) -> Adapters | None:
    """Put adapters beside a module's parameters; give what switches them, None where there are none.

    Raises UsageError where two replace one parameter at once.
    """
    from weightloom.plugins.layers.terms import Dial

    if not adapters:
        return None
    dials = {name: Dial(each.scale) for name, each in zip(_names(adapters), adapters, strict=True)}
    terms: dict[str, tuple[Term, ...]] = {}
    for each, dial in zip(adapters, dials.values(), strict=True):
        for parameter, term in _terms(each, dial, module):
            terms[parameter] = (*terms.get(parameter, ()), term)
    wholes = {name: each.whole for name, each in zip(dials, adapters, strict=True)}
    attach(module, terms)
    return Adapters(dict(zip(dials, adapters, strict=True)), dials, exchanges(module, wholes))


def _terms(adapter: ReadAdapter, dial: Dial, module: nn.Module) -> Iterator[tuple[str, Term]]:
    from weightloom.plugins.layers.dora import decomposed
    from weightloom.plugins.layers.parallel_terms import low_rank

    every: Any = module
    layers: dict[str, nn.Module] = dict(every.named_modules())
    for name, each in adapter.plan.factors(adapter.arrays):
        product = low_rank(layers.get(name.rpartition(".")[0]))(each.a, each.b, each.scale, dial)
        if each.lengths is None:
            yield name, product
        else:
            weight = adapter.whole[name] if name in adapter.whole else dense_weight(module, name)
            yield name, decomposed(product, each.lengths, weight)


def _names(adapters: Sequence[ReadAdapter]) -> tuple[str, ...]:
    """Name each adapter by its directory, or by its whole path where two have one name."""
    paths = [each.plan.source.path for each in adapters]
    short = [path.resolve().name for path in paths]
    return tuple(name if short.count(name) == 1 else str(path) for name, path in zip(short, paths, strict=True))
