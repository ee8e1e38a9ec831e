"""The table from an op's name to its class. Third parties add theirs by `register` or by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint

from weightloom.engine import ops as engine_ops
from weightloom.engine.errors import RuleError
from weightloom.engine.ops.base import ConversionOp
from weightloom.rules.arguments import fits, parameters, wording
from weightloom.rules.installed import installed_points
from weightloom.rules.problems import did_you_mean

GROUP = "weightloom.ops"
Maker = Callable[..., ConversionOp]


class Ops:
    """Ops by name. `Ops()` knows the engine's; an unknown name is looked for among entry points, once."""

    def __init__(self, makers: Mapping[str, Maker] | None = None) -> None:
        self._makers: dict[str, Maker] = dict(makers or {})
        self._of_engine = _names_of_the_engine() if makers is None else frozenset[str]()

    def names(self) -> tuple[str, ...]:
        """Give the names known so far, sorted; entry points that were never asked for are not among them."""
        return tuple(sorted({*self._makers, *self._of_engine}))

    def register(self, name: str, maker: Maker, overwrite: bool = False) -> None:
        """Add an op; raises RuleError when the name is taken."""
        if name in self.names() and not overwrite:
            raise RuleError(
                f"an op named {name!r} is there already",
                expected="a name of its own for each op",
                hint="pass overwrite=True to replace it",
                field="ops",
            )
        self._makers[name] = maker

    def make(self, name: str, arguments: Mapping[str, object]) -> ConversionOp:
        """Make an op; raises RuleError for an unknown name or argument, or one of the wrong type."""
        maker = self._maker(name)
        wanted = parameters(maker)
        for key, value in arguments.items():
            if key not in wanted:
                raise RuleError(
                    f"{name} has no argument {key!r}",
                    expected=f"one of {', '.join(wanted)}" if wanted else "no arguments",
                    hint=did_you_mean(key, wanted),
                    field=key,
                )
            if not fits(value, wanted[key]):
                raise RuleError(f"{name}: {key} is {value!r}", expected=wording(wanted[key]), field=key)
        return _made(name, maker, arguments)

    def parameters(self, name: str) -> tuple[str, ...]:
        """Give the names of an op's arguments; raises RuleError for an unknown op."""
        return tuple(parameters(self._maker(name)))

    def _maker(self, name: str) -> Maker:
        if name not in self._makers:
            known = name in self._of_engine
            self._makers[name] = getattr(engine_ops, name) if known else self._from_entry_point(name)
        return self._makers[name]

    def _from_entry_point(self, name: str) -> Maker:
        found = list(installed_points(GROUP).select(name=name))
        if not found:
            raise RuleError(
                f"unknown op {name!r}",
                expected=f"one of {', '.join(self.names())}",
                hint=did_you_mean(name, self.names())
                or f"install what provides it (entry points of the group {GROUP!r}), or register it",
                field="ops",
            )
        if len({point.value for point in found}) > 1:
            raise RuleError(
                f"two packages offer an op named {name!r}: {_origins(found)}",
                expected="a name of its own for each op",
                field="ops",
            )
        return _loaded(found[0])


def _names_of_the_engine() -> frozenset[str]:
    """Give names alone: an op is imported when a rule has it."""
    return frozenset(engine_ops.__all__) - {ConversionOp.__name__}


def _origins(points: Iterable[EntryPoint]) -> str:
    return ", ".join(sorted(f"{point.value} of {point.dist.name if point.dist else '?'}" for point in points))


def _loaded(point: EntryPoint) -> Maker:
    try:
        maker = point.load()
    except Exception as error:  # another package's code: whatever it raises is that package's fault
        raise RuleError(
            f"the op {point.name!r} cannot be imported from {point.value}: {type(error).__name__}: {error}",
            expected=f"a package whose entry point in {GROUP!r} can be imported",
            field="ops",
        ) from error
    if not callable(maker):
        raise RuleError(f"the entry point {point.value} is {maker!r}", expected="an op's class", field="ops")
    return maker  # type: ignore[no-any-return]


def _made(name: str, maker: Maker, arguments: Mapping[str, object]) -> ConversionOp:
    try:
        op = maker(**arguments)
    except RuleError:
        raise
    except Exception as error:  # another package's constructor may raise anything
        raise RuleError(
            f"{name} cannot be made of {dict(arguments)}: {type(error).__name__}: {error}",
            expected="arguments that the op takes",
            field="ops",
        ) from error
    if not isinstance(op, ConversionOp):
        raise RuleError(f"{name} makes {op!r}", expected="a ConversionOp", field="ops")
    return op


default_ops = Ops()
