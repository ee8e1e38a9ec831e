"""The plan of a model that is quantized, or unpacked, on its way: which modules, by a recipe, and what to say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from weightloom.engine.errors import UsageError
from weightloom.engine.plan import Plan
from weightloom.engine.planning.cast import with_dtype
from weightloom.engine.planning.grouping import grouped_names
from weightloom.engine.quantizing.plans import packed_plan, unpacked_plan
from weightloom.engine.quantizing.quantization import Quantization
from weightloom.engine.quantizing.recipe import Recipe
from weightloom.engine.show import listed
from weightloom.runtime.preparing.casting import Casting
from weightloom.runtime.preparing.prepare import Prepared
from weightloom.runtime.quantizing.wish import Quantizing


@dataclass(frozen=True)
class Quantized:
    """The plan, the modules that it packs, by path, the plan of the same as floats, and what is to be said."""

    plan: Plan
    modules: Mapping[str, Quantization]
    floats: Plan
    notes: tuple[str, ...]

    @property
    def matrices(self) -> dict[str, Quantization]:
        """The same by the names of the float parameters, one for all ends of a tie."""
        names = {matrix_of(path, self.floats): how for path, how in self.modules.items()}
        return {name: how for name, how in names.items() if name in self.floats.by_target}


@dataclass(frozen=True)
class Packables:
    """What is asked, and the model whose modules say what can be packed, and is."""

    asked: Quantizing
    model: Prepared

    def unpacked(self, plan: Plan) -> Plan:
        """Unpack what the files hold packed, if that is asked for; raises as `unpacked_first` does."""
        return unpacked_first(plan, self.model.quantized.modules, self.asked)

    def cast(self, plan: Plan, cast: Casting) -> Plan:
        """Cast as the recipe says of each parameter, and as `cast` decides of all others."""
        return cast_by(plan, cast, self.asked.recipe)

    def packed(self, plan: Plan, config: Mapping[str, Any]) -> Quantized | None:
        """Pack by the recipe; None without one. Raises as `quantized` does."""
        recipe = self.asked.recipe
        return None if recipe is None else quantized(plan, self.model.packable, recipe, config)


def unpacked_first(plan: Plan, packed: Mapping[str, Quantization], asked: Quantizing) -> Plan:
    """Give the plan whose matrices are plain; `packed` are the modules that the files hold packed.

    Raises UsageError where some are packed and that was not asked for, or that are scaled as a whole too.
    """
    if not packed:
        return plan
    if not asked.unpack:
        raise UsageError(
            f"{len(packed)} modules are quantized already, such as {listed(sorted(packed), 3)}",
            expected="plain weights, to round once",
            hint="get the plain weights; or convert with --requantize, which rounds what is rounded once more",
            field="quantize",
        )
    scaled = sorted(path for path in packed if {f"{path}.global_scale", f"{path}_global_scale"} & plan.params.keys())
    if scaled:
        raise UsageError(
            f"{listed(scaled, 3)} have a scale of the whole matrix, which is not unpacked here",
            expected="words, scales and biases",
            tensor=scaled[0],
            field="dequantize",
        )
    return unpacked_plan(plan, {matrix_of(path, plan): how for path, how in packed.items()})


def quantized(plan: Plan, paths: Iterable[str], recipe: Recipe, config: Mapping[str, Any]) -> Quantized:
    """Pack what a recipe chooses among the modules at these paths, as far as the plan makes them.

    Raises UsageError where the recipe has rules for modules, and there is none that it would pack.
    """
    made = {name for group in plan.groups for name in group.targets}
    matrices = {path: matrix_of(path, plan) for path in paths}
    shapes = {path: plan.params[name].shape for path, name in matrices.items() if name in made}
    chosen = recipe.chosen(shapes, config)
    if recipe.modules and not chosen.modules:
        raise UsageError(
            "\n".join([f"the recipe {recipe.name} quantizes none of {len(shapes)} modules", *chosen.notes(shapes)]),
            expected=f"modules such as {listed(sorted(shapes), 3)}",
            field="quantize",
        )
    after = packed_plan(plan, {matrices[path]: how for path, how in chosen.modules.items()})
    ends = dict(_second_ends(plan, chosen.modules, matrices))
    notes = (*_said(chosen.modules), *chosen.notes(shapes), *_dtypes_said(recipe, plan))
    return Quantized(after, {**chosen.modules, **ends}, plan, notes)


def cast_by(plan: Plan, cast: Casting, recipe: Recipe | None) -> Plan:
    """Give the plan with float parameters cast as a recipe says of each, and as `cast` decides of all others."""
    said = {} if recipe is None else recipe.dtypes(plan.params)
    done = replace(cast, kept={**cast.kept, **dict.fromkeys(said, "the recipe")}).of(plan)
    for dtype in dict.fromkeys(filter(None, said.values())):
        own = {name for name, each in said.items() if each == dtype}
        done = with_dtype(done, dtype, keep=lambda name, own=own: name not in own)  # type: ignore[misc]
    return done


def matrix_of(path: str, plan: Plan) -> str:
    """Give the name of the parameter that is packed: `PATH.weight` of a module, or a stack by its own name."""
    return path if path in plan.params else f"{path}.weight"


def _second_ends(
    plan: Plan, modules: Mapping[str, Quantization], matrices: Mapping[str, str]
) -> Iterator[tuple[str, Quantization]]:
    """Give the modules that share the matrix of one that is packed."""
    hows = {matrices[path]: how for path, how in modules.items()}
    for record in plan.report.tied:
        if record.other in hows and record.parameter in plan.params:
            yield record.parameter.removesuffix(".weight"), hows[record.other]


def _dtypes_said(recipe: Recipe, plan: Plan) -> Iterator[str]:
    """Say which parameters have a dtype by the recipe, or keep their own."""
    by_dtype: dict[str | None, list[str]] = {}
    for name, dtype in recipe.dtypes(plan.params).items():
        by_dtype.setdefault(dtype, []).append(name)
    for dtype, names in by_dtype.items():
        yield f"{'keep their dtype' if dtype is None else dtype} by the recipe: {', '.join(grouped_names(names))}"
    yield from recipe.idle_tensors(plan.params)


def _said(modules: Mapping[str, Quantization]) -> Iterator[str]:
    for how, count in Counter(modules.values()).most_common():
        yield f"quantized: {count} modules to {how}"
