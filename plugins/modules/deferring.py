"""Modules whose parameters are read when they are first used.

MLX's own laziness cannot carry this: it reads a file object at once, and a file by its path without noticing that
it changed. So the module is where it is noticed that a parameter is used: until then an array of NaNs, which takes
no memory, stands in its place for what only looks at shapes; every way that Python has to a module's content
(`module.weight`, `module["weight"]`, `parameters()`, `items()`, ...) reads first. Of functions of MLX that take a
module itself for a tree of arrays, `mx.eval(module)` say, the stand-ins are all that is seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_unflatten

from weightloom.plugins.modules.binding import check_fits, param_specs
from weightloom.plugins.modules.stand_in import stand_in

if TYPE_CHECKING:
    from weightloom.engine.reading.lazy import LazyArrays

# Whether only other modules, or shapes, are looked for in a module.
_LOOKING: ContextVar[bool] = ContextVar("weightloom_looking", default=False)


def bind_lazily(module: nn.Module, arrays: LazyArrays, kept: Mapping[str, mx.array]) -> None:
    """Let a module read its parameters from `arrays` when they are used; those of `kept` it has.

    Raises PlanError for a lacking or unknown name, or another shape.
    """
    have = {name: tuple(array.shape) for name, array in kept.items()}
    check_fits(param_specs(module), {**{name: spec.shape for name, spec in arrays.specs.items()}, **have})
    modules: dict[str, Any] = dict(module.named_modules())
    pending: dict[str, dict[str, str]] = {}
    for name in arrays.specs:
        path, _, key = name.rpartition(".")
        pending.setdefault(path, {})[key] = name
    # What lies in a list or a dict of a module's own has no module to wait in.
    loose = [name for path, names in pending.items() if path not in modules for name in names.values()]
    module.update(tree_unflatten([(name, arrays[name]) for name in loose]))
    for path, names in pending.items():
        if path in modules:
            _defer(modules[path], names, arrays)


def _defer(module: Any, names: Mapping[str, str], arrays: LazyArrays) -> None:
    for key, name in names.items():
        dict.__setitem__(module, key, stand_in(arrays.specs[name]))
    object.__setattr__(module, "_pending", dict(names))
    object.__setattr__(module, "_arrays", arrays)
    module.__class__ = _deferring(cast("Hashable", type(module)))


@cache
def _deferring(kind: Any) -> type:
    """Give the class of modules of a kind that still have parameters to read."""
    return type(kind.__name__, (Deferring, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


class Deferring:
    """What a module's class begins with while parameters of it are unread; `_pending` gives their names by key.

    With the last one read the module is of its own class again, even in the midst of a call: hence `super()` first.
    """

    _pending: Mapping[str, str] = {}
    _arrays: Mapping[str, mx.array] = {}

    def __getitem__(self, key: str) -> Any:
        content = cast("dict[str, Any]", super())
        self._read(key)
        return content.__getitem__(key)

    def __setitem__(self, key: str, value: object) -> None:
        cast("dict[str, Any]", super()).__setitem__(key, value)
        self._forget(key)

    def __setattr__(self, key: str, value: object) -> None:
        # A module asks for what it has under a name before it puts something else there.
        if key in self._pending and isinstance(value, mx.array):
            self[key] = value
        else:
            super().__setattr__(key, value)

    def __delitem__(self, key: str) -> None:
        cast("dict[str, Any]", super()).__delitem__(key)
        self._forget(key)

    def get(self, key: str, default: object = None) -> Any:
        """As of a dict; reads the parameter first."""
        content = cast("dict[str, Any]", super())
        self._read(key)
        return content.get(key, default)

    def pop(self, key: str, *default: object) -> Any:
        """As of a dict; reads the parameter first."""
        content = cast("dict[str, Any]", super())
        self._read(key)
        return content.pop(key, *default)

    def items(self) -> Any:
        """As of a dict; reads all parameters of the module first."""
        content = cast("dict[str, Any]", super())
        self._read_all()
        return content.items()

    def values(self) -> Any:
        """As of a dict; reads all parameters of the module first."""
        content = cast("dict[str, Any]", super())
        self._read_all()
        return content.values()

    def copy(self) -> Any:
        """As of a dict; reads all parameters of the module first."""
        content = cast("dict[str, Any]", super())
        self._read_all()
        return content.copy()

    def children(self) -> Any:
        """As of every module; reads nothing."""
        with _looking():
            return cast("nn.Module", super()).children()

    def __repr__(self) -> str:
        with _looking():
            return super().__repr__()

    def _read_all(self) -> None:
        for key in list(self._pending):
            self._read(key)

    def _read(self, key: str) -> None:
        if key in self._pending and not _LOOKING.get():
            dict.__setitem__(cast("dict[str, Any]", self), key, self._arrays[self._pending[key]])
            self._forget(key)

    def _forget(self, key: str) -> None:
        """Wait for a parameter no longer."""
        if key not in self._pending:
            return
        rest = {other: name for other, name in self._pending.items() if other != key}
        object.__setattr__(self, "_pending", rest)
        if not rest:
            for name in ("_pending", "_arrays"):
                object.__delattr__(self, name)
            cast("Any", self).__class__ = type(self).__bases__[1]


@contextmanager
def as_its_own(module: Any) -> Iterator[None]:
    """Let a module be of its own class in the block, where that may change; what is unread waits on top of it again."""
    kind = type(module)
    if not issubclass(kind, Deferring):
        yield
        return
    module.__class__ = kind.__bases__[1]
    try:
        yield
    finally:
        module.__class__ = _deferring(cast("Hashable", type(module)))


@contextmanager
def _looking() -> Iterator[None]:
    token = _LOOKING.set(True)
    try:
        yield
    finally:
        _LOOKING.reset(token)
