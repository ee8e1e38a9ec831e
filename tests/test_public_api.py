"""The public names are there, documented, and each package says which they are."""

import importlib
import importlib.util
import inspect

import pytest

import weightloom
from tests.guards import LAYERS

PROMISED = {
    "engine": """
        Checkpoint TensorSpec
        WeightRenaming PrefixChange WeightConverter Drop Tie RenameGroup IndexMap KeepDtype
        ConversionOp Chunk Split Concatenate MergeModulelist SplitModulelist
        Transpose PermuteForRope Interleave
        RuleSet ModuleNode scoped_rules Plan build_plan save_plan Sharding LoadReport
        adapter_rules plan_adapter changes Change BlockDiagonal CutDiagonal
        WeightloomError PlanError RuleError CheckpointError NotInvertible
    """,
    "rules": "load_rules registry Registry lint_rules",
}


def public_names(layer: str) -> list[str]:
    """Give a layer's `__all__`; a layer that is not written yet has none."""
    return list(getattr(importlib.import_module(f"weightloom.{layer}"), "__all__", []))


def undocumented(layer: str) -> list[str]:
    """List the public classes and functions without a docstring of their own."""
    package = importlib.import_module(f"weightloom.{layer}")
    objects = {name: getattr(package, name) for name in public_names(layer)}
    written = {n: o for n, o in objects.items() if inspect.isclass(o) or inspect.isfunction(o)}
    return [name for name, found in written.items() if not has_own_docstring(found)]


def has_own_docstring(found: type | object) -> bool:
    """Tell a written docstring from an inherited one and from the signature that `dataclass` puts there."""
    text = vars(found).get("__doc__") if inspect.isclass(found) else inspect.getdoc(found)
    return bool(text) and not str(text).startswith(f"{getattr(found, '__name__', '')}(")


@pytest.mark.parametrize("layer", PROMISED)
def test_promised_names_are_public(layer: str) -> None:
    assert not set(PROMISED[layer].split()) - set(public_names(layer))


@pytest.mark.parametrize("layer", LAYERS)
def test_public_names_exist_once(layer: str) -> None:
    names = public_names(layer)
    package = importlib.import_module(f"weightloom.{layer}")
    assert len(names) == len(set(names))
    assert not [name for name in names if not hasattr(package, name)]


@pytest.mark.parametrize("layer", LAYERS)
def test_public_names_are_documented(layer: str) -> None:
    assert not undocumented(layer)


def test_every_facade_name_can_be_imported() -> None:
    assert [name for name in weightloom.__all__ if getattr(weightloom, name, None) is None] == []
    assert set(weightloom.__all__) <= set(dir(weightloom))


def test_a_misspelt_facade_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'inspekt'"):
        _ = weightloom.inspekt  # type: ignore[attr-defined]


def test_the_docstring_guard_sees_what_is_missing() -> None:
    class Base:
        """Written."""

    class Silent(Base):
        pass

    class Generated:
        __doc__ = "Generated(a: int)"

    assert has_own_docstring(Base)
    assert not has_own_docstring(Silent)
    assert not has_own_docstring(Generated)
