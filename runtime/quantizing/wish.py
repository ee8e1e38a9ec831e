"""What is asked of a model's matrices: to be packed by a recipe, or unpacked, or both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weightloom.engine.errors import UsageError
from weightloom.engine.quantizing.recipe import Recipe
from weightloom.rules.recipe_file import find_recipe
from weightloom.runtime.preparing.planner import Form

DENSE = "dense"


@dataclass(frozen=True, slots=True)
class Quantizing:
    """A recipe, None where nothing is packed; with `unpack` what is packed in the files is unpacked first."""

    recipe: Recipe | None
    unpack: bool = False

    @property
    def title(self) -> str:
        """What is done, in a word."""
        return "dequantizing" if self.recipe is None else "quantizing"


def form_for(quantizing: Quantizing | None) -> Form:
    """Say how modules go on that a vendor packed: as floats, to be rounded once, where they are to be unpacked."""
    return Form.FLOATS if quantizing is not None and quantizing.unpack else Form.PACKED


DEQUANTIZE = Quantizing(None, unpack=True)


def asked_quantizing(given: object) -> Quantizing | None:
    """Read what `load` is given: a recipe, its name or file, or "dense" for no packed module; None asks for nothing.

    Raises UsageError for what is none of these, and as `find_recipe` does.
    """
    if given is None or isinstance(given, Quantizing):
        return given
    if given == DENSE:
        return DEQUANTIZE
    if isinstance(given, Recipe):
        return Quantizing(given)
    if not isinstance(given, str | Path):
        raise UsageError(
            f"quantize is {type(given).__name__}",
            expected=f"the name of a recipe, the path of one, or {DENSE!r}",
            field="quantize",
        )
    return Quantizing(find_recipe(given))


def ordered_quantizing(recipe: str | None, *, dequantize: bool, requantize: bool) -> Quantizing | None:
    """Read the arguments of a command; raises UsageError for those that do not go together."""
    if dequantize and (recipe is not None or requantize):
        raise UsageError(
            "--dequantize beside --quantize",
            expected="one of them; --quantize with --requantize unpacks first",
            field="dequantize",
        )
    if requantize and recipe is None:
        raise UsageError("--requantize without --quantize", expected="a recipe to quantize by", field="requantize")
    if dequantize:
        return DEQUANTIZE
    return None if recipe is None else Quantizing(find_recipe(recipe), unpack=requantize)
