"""PEFT's `target_parameters`: factors of parameters that are no module's weight, such as stacks of experts.

Format: huggingface/peft 0.21, `tuners/lora/layer.py`, `ParamWrapper`. Of a stack (E, rows, columns) all factors are
folded into two matrices. In A (r * E, n) those of one expert lie together; in B (m, r * E) the expert runs fastest, the
rank slower. Up to 0.18 n is rows and m columns; from 0.19 on (huggingface/peft#3083) n is columns and m rows, as of a
linear layer, except for experts that are stored (in, out). So shapes decide, and where a stack is square the other
factors of the file, then the recorded version.

The file says which module, not which parameter: several of one module are nested, the first innermost, each a
`base_layer` of the next. Shapes tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from weightloom.engine import RuleSet, TensorSpec, Transpose, Unflatten, WeightConverter, WeightRenaming
from weightloom.engine.errors import PlanError
from weightloom.runtime.adapting.peft_factors import Factor

_MATRIX, _STACK = 2, 3
_LATER = (0, 19)
_NESTED = re.compile(r"\.base_layer(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Bare:
    """A parameter of the model, its spec, its two factors, and whether A is over its rows (`turned`)."""

    parameter: str
    spec: TensorSpec
    a: Factor
    b: Factor
    turned: bool

    @property
    def experts(self) -> int:
        """How many matrices the parameter has."""
        return self.spec.shape[0] if len(self.spec.shape) == _STACK else 1

    @property
    def is_square(self) -> bool:
        """Whether its shape does not say over which dim A is."""
        return self.spec.shape[-1] == self.spec.shape[-2]


def bare_parameters(
    factors: Sequence[Factor],
    targets: Sequence[str],
    params: Mapping[str, TensorSpec],
    base: str,
    version: str | None,
) -> tuple[Bare, ...]:
    """Find the factors of parameters that `targets`, names or endings of names, are; those of modules are left out.

    `base` is the prefix of the base model, which either side may lack. Raises PlanError for factors that fit none of
    their module's targets or fit several, and for square ones of which nothing says how they lie.
    """
    parents = _parents(targets, params)
    found: list[Bare] = []
    for module, pairs in _pairs(factors).items():
        near = (module, f"{base}.{module}", module.removeprefix(f"{base}."))
        parent = next((name for name in near if name in parents), None)
        if parent is not None:
            found += _assigned(module, pairs, {name: params[name] for name in parents[parent]})
    return _turned(found, version)


def published(module: str) -> str:
    """Give the name of a module without the nesting that several of its parameters make."""
    return _NESTED.sub("", module)


def bare_rules(found: Sequence[Bare]) -> RuleSet:
    """Give the rules from the names in the file to factors of the parameters, (E, r, columns) and (E, rows, r)."""
    rules: dict[WeightRenaming | WeightConverter, None] = {}
    for each in found:
        for factor in (each.a, each.b):
            renamed, unfolded = _unfolding(each, factor.kind)
            rules[WeightRenaming(f"^{re.escape(factor.name)}(?![\\w.])", renamed, always=False)] = None
            rules |= dict.fromkeys(unfolded)
    return RuleSet(rules)


def _parents(targets: Sequence[str], params: Mapping[str, TensorSpec]) -> dict[str, list[str]]:
    """Group the targeted parameters by their module: matrices and stacks of them, but no module's own `weight`."""
    found: dict[str, list[str]] = {}
    for name, spec in params.items():
        parent, _, key = name.rpartition(".")
        targeted = any(name == target or name.endswith(f".{target}") for target in targets)
        if targeted and len(spec.shape) in (_MATRIX, _STACK) and (key != "weight" or len(spec.shape) == _STACK):
            found.setdefault(parent, []).append(name)
    return found


def _pairs(factors: Sequence[Factor]) -> dict[str, list[tuple[Factor, Factor]]]:
    """Give the pairs of factors by the module that they are of, nesting aside."""
    by_place: dict[str, dict[str, Factor]] = {}
    for factor in factors:
        by_place.setdefault(factor.module, {})[factor.kind] = factor
    found: dict[str, list[tuple[Factor, Factor]]] = {}
    for place, kinds in by_place.items():
        if len(kinds) == len("AB"):
            found.setdefault(published(place), []).append((kinds["A"], kinds["B"]))
    return found


def _assigned(
    module: str, pairs: Sequence[tuple[Factor, Factor]], targets: Mapping[str, TensorSpec]
) -> tuple[Bare, ...]:
    """Give each pair the one target that its shapes fit."""
    chosen = list(islice(_choices(pairs, targets), 2))
    if len(chosen) != 1:
        said = "; ".join(f"{a.name} {list(a.shape)} and {list(b.shape)}" for a, b in pairs)
        wanted = ", ".join(f"{name} {list(spec.shape)}" for name, spec in targets.items())
        raise PlanError(
            f"the factors of parameters of {module} fit {'several of' if chosen else 'none of'} {wanted}: {said}",
            expected="A (r * E, columns) and B (rows, r * E), or rows and columns exchanged, of one of them each",
            hint="see whether the adapter was made for this model",
            tensor=pairs[0][0].name,
            field="target_parameters",
        )
    return tuple(
        Bare(name, targets[name], a, b, not _fits(targets[name], a, b))
        for name, (a, b) in zip(chosen[0], pairs, strict=True)
    )


def _choices(pairs: Sequence[tuple[Factor, Factor]], targets: Mapping[str, TensorSpec]) -> Iterator[tuple[str, ...]]:
    """Yield the ways to give each pair a target of its own that it fits."""
    if not pairs:
        yield ()
        return
    a, b = pairs[0]
    for name, spec in targets.items():
        if _fits(spec, a, b) or (len(spec.shape) == _STACK and _fits(spec, b, a)):
            left = {other: each for other, each in targets.items() if other != name}
            yield from ((name, *rest) for rest in _choices(pairs[1:], left))


def _fits(spec: TensorSpec, columns: Factor, rows: Factor) -> bool:
    """Say whether a factor is over the columns of a parameter and the other over its rows, of one rank for all."""
    if len(columns.shape) != _MATRIX or len(rows.shape) != _MATRIX or columns.rank != rows.rank:
        return False
    experts = spec.shape[0] if len(spec.shape) == _STACK else 1
    over = [factor.shape[1] if factor.kind == "A" else factor.shape[0] for factor in (columns, rows)]
    return over == [spec.shape[-1], spec.shape[-2]] and columns.rank is not None and columns.rank % experts == 0


def _turned(found: Sequence[Bare], version: str | None) -> tuple[Bare, ...]:
    """Settle how the factors of square parameters lie."""
    square = [each for each in found if each.is_square and len(each.spec.shape) == _STACK]
    if not square:
        return tuple(found)
    told = {each.turned for each in found if not each.is_square}
    turned = told.pop() if len(told) == 1 else _turned_in(version, square[0])
    return tuple(Bare(e.parameter, e.spec, e.a, e.b, turned) if e in square else e for e in found)


def _turned_in(version: str | None, square: Bare) -> bool:
    """Say whether a version of PEFT has A over rows; raises PlanError for one that is not known to.

    0.18.2 was never released: its development changed from one to the other.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", version or "")[:3])
    if len(numbers) < _STACK or numbers == (0, 18, 2):
        raise PlanError(
            f"{square.parameter} is {list(square.spec.shape)}: its factors do not say which of them is over its rows, "
            f"and peft_version is {version!r}",
            expected="a version of PEFT in adapter_config.json, or factors of a parameter that is not square",
            hint="write the version that it was trained with: from 0.19 on lora_A is over the columns",
            tensor=square.a.name,
            field="peft_version",
        )
    return numbers[:2] < _LATER


def _unfolding(bare: Bare, kind: str) -> tuple[str, tuple[WeightConverter, ...]]:
    """Give the name that a factor gets, and the converter from there: none for a matrix, whose ranks are not folded."""
    of = {"A": "B", "B": "A"}[kind] if bare.turned else kind
    if len(bare.spec.shape) != _STACK:
        return f"^lora_{of}.{bare.parameter}", ()
    prefix = f"folded_{kind}_to_{of}_{bare.experts}"
    source, target = rf"^{prefix}\.(.*)", rf"^lora_{of}.\1"
    return f"^{prefix}.{bare.parameter}", (WeightConverter(source, target, list(_ops(bare, kind)), always=False),)


def _ops(bare: Bare, kind: str) -> Iterator[Unflatten | Transpose]:
    if kind == "A":
        yield Unflatten(0, 1, (bare.experts, -1))
        if bare.turned:
            yield Transpose(1, 2)
    else:
        yield Unflatten(1, 2, (-1, bare.experts))
        yield Transpose(0, 2)
        if not bare.turned:
            yield Transpose(1, 2)
