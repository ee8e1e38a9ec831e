"""PEFT's `target_parameters`: which parameter of the model each pair of factors is of.

Format: huggingface/peft 0.21, `tuners/lora/layer.py`, `ParamWrapper`. The file says which module, not which parameter:
several of one module are nested, the first innermost, each a `base_layer` of the next. Shapes tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from weightloom.engine import TensorSpec
from weightloom.engine.errors import PlanError
from weightloom.runtime.adapting.bare_order import settled
from weightloom.runtime.adapting.bare_parameter import MATRIX, STACK, Bare, is_stack, published
from weightloom.runtime.adapting.peft_factors import Factor


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
    return settled(found, params, version)


def _parents(targets: Sequence[str], params: Mapping[str, TensorSpec]) -> dict[str, list[str]]:
    """Group the targeted parameters by their module: matrices and stacks of them, but no module's own `weight`."""
    found: dict[str, list[str]] = {}
    for name, spec in params.items():
        parent, _, key = name.rpartition(".")
        targeted = any(name == target or name.endswith(f".{target}") for target in targets)
        if targeted and len(spec.shape) in (MATRIX, STACK) and (key != "weight" or is_stack(spec)):
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
        if _fits(spec, a, b) or (is_stack(spec) and _fits(spec, b, a)):
            left = {other: each for other, each in targets.items() if other != name}
            yield from ((name, *rest) for rest in _choices(pairs[1:], left))


def _fits(spec: TensorSpec, columns: Factor, rows: Factor) -> bool:
    """Say whether a factor is over the columns of a parameter and the other over its rows, of one rank for all."""
    if len(columns.shape) != MATRIX or len(rows.shape) != MATRIX or columns.rank != rows.rank:
        return False
    experts = spec.shape[0] if is_stack(spec) else 1
    over = [factor.shape[1] if factor.kind == "A" else factor.shape[0] for factor in (columns, rows)]
    return over == [spec.shape[-1], spec.shape[-2]] and columns.rank is not None and columns.rank % experts == 0
