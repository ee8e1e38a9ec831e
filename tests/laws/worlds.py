"""Worlds: tensors, rules on them, and the parameters that must come out, worked out without the engine.

A world is put together from blocks. A block's names begin with a word of its own, so that blocks do not meet.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import regex
from hypothesis import assume
from hypothesis import strategies as st

from tests.strategies import ANY_NAMES, OP_CONFIG, OpCase, flat, op_cases
from weightloom.engine import (
    Checkpoint,
    Drop,
    IndexMap,
    Plan,
    PrefixChange,
    RenameGroup,
    Rule,
    RuleSet,
    Scope,
    Split,
    TensorSpec,
    Tie,
    WeightConverter,
    WeightRenaming,
    build_plan,
)
from weightloom.engine.dtypes import DTYPES, byte_length

WORDS = ("alpha", "bravo", "carol", "delta", "echo")


@dataclass(frozen=True)
class Tensor:
    """A dtype, a shape, and the bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.dtype, self.shape)


Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class World:
    """What a checkpoint holds, the rules on it, and what must become of it."""

    tensors: Tensors = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    params: Tensors = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    copies: frozenset[str] = frozenset()
    closed: bool = False
    cases: Mapping[str, OpCase] = field(default_factory=dict)

    def __add__(self, other: World) -> World:
        return World(
            {**self.tensors, **other.tensors},
            (*self.rules, *other.rules),
            {**self.params, **other.params},
            self.dropped | other.dropped,
            self.copies | other.copies,
            self.closed or other.closed,
            {**self.cases, **other.cases},
        )

    def plan(self, checkpoint: Checkpoint) -> Plan:
        params = {name: tensor.spec for name, tensor in self.params.items()} if self.closed else None
        return build_plan(checkpoint, RuleSet(self.rules), params, config=OP_CONFIG)


def random_bytes(count: int, seed: int) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8).tobytes()


def tensor(dtype: str, shape: tuple[int, ...], seed: int) -> Tensor:
    return Tensor(dtype, shape, random_bytes(byte_length(dtype, shape) or 0, seed))


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Any dtype; zero-size and 0-d ones too."""
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    shape = tuple(draw(st.lists(st.sampled_from((0, 1, 2, 3, 5)), max_size=3)))
    if DTYPES[dtype].bits < 8:
        shape = (*shape, draw(st.sampled_from((0, 4, 8))))
    return tensor(dtype, shape, draw(st.integers(0, 1 << 20)))


@st.composite
def plain(draw: st.DrawFn, word: str) -> World:
    names = draw(st.lists(ANY_NAMES, min_size=1, max_size=4, unique=True))
    found = {f"{word}.{name}": draw(tensors()) for name in names}
    return World(found, (), found)


@st.composite
def renamed(draw: st.DrawFn, word: str) -> World:
    """One rule on names, of each class."""
    makers: dict[str, tuple[Rule, Mapping[str, str]]] = {
        "captures": (
            WeightRenaming(rf"{word}\.(\d+)\.old\.(\d+)", rf"{word}.\2.new.\1"),
            {f"{word}.{i}.old.{j}.w": f"{word}.{j}.new.{i}.w" for i, j in ((0, 1), (10, 2), (3, 3))},
        ),
        "sources": (
            WeightRenaming([f"{word}_gamma", f"{word}_beta(?!x)"], f"{word}_weight"),
            {f"{word}.1.{word}_gamma": f"{word}.1.{word}_weight", f"{word}.2.{word}_beta": f"{word}.2.{word}_weight"},
        ),
        "scope": (
            WeightRenaming("^inner", "outer.inner", scope=Scope(word)),
            {f"{word}.inner.w": f"{word}.outer.inner.w", f"{word}.x.inner": f"{word}.x.inner"},
        ),
        "remove": (PrefixChange(prefix_to_remove="pre", model_prefix=word), {f"{word}.pre.1.w": f"{word}.1.w"}),
        "add": (
            PrefixChange(prefix_to_add="pre", model_prefix=word),
            {f"{word}.1.w": f"{word}.pre.1.w", f"{word}.pre.2.w": f"{word}.pre.2.w"},
        ),
        "group": (
            RenameGroup([f"{word}_a", f"{word}_b"], [f"{word}_b", f"{word}_c"]),
            {f"{word}.0.{word}_a": f"{word}.0.{word}_b", f"{word}.0.{word}_b": f"{word}.0.{word}_c"},
        ),
        "group that is off": (
            RenameGroup(["nowhere", f"{word}_b"], ["x", "y"]),
            {f"{word}.{word}_b": f"{word}.{word}_b"},
        ),
        "index": (
            IndexMap(rf"{word}\.{{2i+1}}\.m", f"{word}.{{i}}.odd"),
            {f"{word}.1.m": f"{word}.0.odd", f"{word}.2.m": f"{word}.2.m", f"{word}.21.m": f"{word}.10.odd"},
        ),
    }
    rule, names = makers[draw(st.sampled_from(sorted(makers)))]
    found = {name: draw(tensors()) for name in names}
    return World(found, (rule,), {names[name]: each for name, each in found.items()})


@st.composite
def dropped(draw: st.DrawFn, word: str) -> World:
    found = {f"{word}.{i}.{word}_buffer": draw(tensors()) for i in (0, 2)}
    return World(found, (Drop(f"{word}_buffer", why="not a parameter"),), {}, frozenset(found))


@st.composite
def tied(draw: st.DrawFn, word: str) -> World:
    one = draw(tensors())
    ends = {f"{word}.head.w": one, f"{word}.embed.w": one}
    rule = Tie(rf"^{word}\.head\.(w)", rf"{word}.embed.\1")
    return World(ends, (rule,), ends, copies=frozenset({f"{word}.head.w"}))


@st.composite
def converted(draw: st.DrawFn, word: str) -> World:
    """A converter with a chain of ops, on several layers."""
    case = draw(op_cases(max_ops=4))
    # Stars on both sides pair: such a rule has one group a number, which the case does not describe.
    assume(not (all(case.listed) and all(case.numbered)) and all(case.made))
    start, again = draw(st.sampled_from((("", ""), ("*.", "*."), (r"(\d+)\.", r"\1."))))
    end = draw(st.sampled_from(("", ".weight")))
    sources = [f"{start}{word}_s{j}" + (r"\.*.w" if many else "") for j, many in zip("abc", case.listed, strict=False)]
    targets = [f"{again}{word}_t{j}" + (r"\.*.w" if many else "") for j, many in enumerate(case.numbered)]
    scope = draw(st.sampled_from((None, Scope(word))))
    world = World(
        rules=(WeightConverter(sources, targets, case.ops, scope=scope),),
        closed=any(isinstance(op, Split) and op.sizes is None for op in case.ops),
    )
    layers = draw(st.lists(st.integers(0, 120), min_size=1, max_size=3, unique=True))
    return reduce(operator.add, (_layer(case, f"{word}.{n}.{word}", end, n) for n in layers), world)


def _layer(case: OpCase, start: str, end: str, layer: int) -> World:
    parts = case.arrays(layer * 100)
    before = {
        f"{start}_s{'abc'[j]}{item}{end}": Tensor(case.dtype, array.shape, array.tobytes())
        for j, part in enumerate(parts)
        for item, array in _items(part, case.listed[j])
    }
    after = {
        f"{start}_t{j}{item}{end}": Tensor(case.dtype, array.shape, array.tobytes())
        for j, part in enumerate(case.expected(parts))
        for item, array in _items(part, case.numbered[j])
    }
    return World(before, (), after, cases=dict.fromkeys(after, case))


def _items(part: list[Any], many: bool) -> Iterator[tuple[str, Any]]:
    for n, array in enumerate(part):
        yield (f".{n}.w" if many else ""), array


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One to four blocks; the target is open, or the parameters are known."""
    # Its cache would draw random numbers to shrink, which Hypothesis forbids in a strategy.
    regex.purge()
    kinds = st.sampled_from((plain, renamed, dropped, tied, converted, converted, converted))
    words = draw(st.permutations(WORDS))[: draw(st.integers(1, 4))]
    blocks = [draw(draw(kinds)(word)) for word in words]
    found = reduce(operator.add, blocks, World(closed=draw(st.booleans())))
    # The second end of a tie is a parameter only where the parameters are known.
    hidden = frozenset() if found.closed else found.copies
    assume(found.params.keys() > hidden)
    return replace(found, params={name: each for name, each in found.params.items() if name not in hidden})


def bytes_of(array: Any) -> bytes:
    """The bytes of an MLX array, by NumPy."""
    import mlx.core as mx

    if array.size == 0:
        return b""
    return np.array(mx.contiguous(array).reshape(-1).view(mx.uint8)).tobytes()


def check_values(world: World, found: Mapping[str, Any]) -> None:
    """The loaded parameters are those that NumPy made."""
    assert found.keys() == world.params.keys()
    for name, expected in world.params.items():
        assert bytes_of(found[name]) == expected.data, name


__all__ = ["World", "bytes_of", "check_values", "flat", "worlds"]
