"""The mlx layout is offered for what mlx-lm reads, and for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from weightloom.rules import registry

pytestmark = [pytest.mark.oracle, pytest.mark.sample]

# Text models that mlx-lm reads as a part of a whole alone.
PARTS = {"gemma3n_text", "gemma4_unified_text", "qwen3_5_moe_text", "qwen3_5_text"}
# It calls another family's models so: its `minimax` reads minimax_m2.
OTHERS = {"minimax"}


def model_types() -> set[str]:
    """Those that mlx-lm has a module for, under its own name or another."""
    import mlx_lm.models
    from mlx_lm.utils import MODEL_REMAPPING

    modules = {path.stem for path in Path(mlx_lm.models.__file__).parent.glob("*.py")}
    named = {module.replace("-", "_") for module in modules}
    return modules | named | {name for name, module in MODEL_REMAPPING.items() if module.replace("-", "_") in named}


def test_each_model_type_with_the_layout_is_one_of_mlx_lm() -> None:
    known = {name for family in registry.families() for name in registry.file(family).head.identifiers}
    types = {name for name in known if name == name.lower()}
    offered = {name for name in types if "mlx" in registry.layouts(name)}
    read = model_types()
    assert offered - read == PARTS
    assert (types & read) - offered == OTHERS
