"""Adapters of a loaded model: several, switched between calls, and refused where they cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.test_adapter_load import ATTENTION, adapter, changed, delta, logits, pair
from tests.runtime.models import runnable, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import CheckpointError, UsageError
from weightloom.runtime import convert_adapter
from weightloom.runtime.loading.loading import load

V = f"{ATTENTION}.v_proj"
NAMES = {module: f"{module.removeprefix('base_model.model.')}.weight" for module in (f"{ATTENTION}.q_proj", V)}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base", "llama")


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    return adapter(tmp_path / "one", pair()), adapter(tmp_path / "two", pair(seed=2) | pair(V, rows=16), lora_alpha=1)


def reference(base: Path, folder: Path, one: float, two: float) -> Any:
    q, v = NAMES
    deltas = {
        NAMES[q]: delta(pair(), 2 * one) + delta(pair(seed=2), 0.5 * two),
        NAMES[v]: delta(pair(V, rows=16), 0.5 * two, V),
    }
    return changed(base, deltas, folder)


def test_several_are_switched_between_calls(base: Path, two: tuple[Path, Path], tmp_path: Path) -> None:
    m = load(base, adapter=[(two[0], 1.0), (two[1], 0.0)])
    assert m.adapters is not None
    assert m.adapters.scales == {"one": 1.0, "two": 0.0}
    assert np.allclose(logits(m), reference(base, tmp_path / "a", 1, 0), atol=1e-3)
    m.adapters.use("two")
    assert np.allclose(logits(m), reference(base, tmp_path / "b", 0, 1), atol=1e-3)
    m.adapters.set({"one": -0.5})
    assert np.allclose(logits(m), reference(base, tmp_path / "c", -0.5, 1), atol=1e-3)
    m.adapters.use()
    assert np.array_equal(logits(m), logits(load(base)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_zero_is_the_base_bit_for_bit_in_each_dtype(dtype: str, base: Path, two: tuple[Path, Path]) -> None:
    m = load(base, dtype, adapter=[(two[0], 0.0), (two[1], 0)])
    plain = load(base, dtype)
    assert np.array_equal(logits_as_floats(m), logits_as_floats(plain))
    assert m.adapters is not None
    m.adapters.use("one", "two")
    assert not np.array_equal(logits_as_floats(m), logits_as_floats(plain))


def logits_as_floats(m: Any) -> Any:
    import mlx.core as mx

    from tests.cases.test_adapter_load import TOKENS

    return np.array(m.model(TOKENS).astype(mx.float32))


def test_what_is_off_leaves_the_scales_as_they_were(base: Path, two: tuple[Path, Path]) -> None:
    m = load(base, adapter=two[0])
    assert m.adapters is not None
    for scales in ({"one": 2.0, "three": 1.0}, {"one": float("nan")}, {"one": True}, {"one": "1"}, {"one": 10**400}):
        with pytest.raises(UsageError):
            m.adapters.set(scales)  # type: ignore[arg-type]
    for odd in (None, 3, [("one", 1.0)], {"one": 1e39}, {1: 1.0, "three": 1.0}):
        with pytest.raises(UsageError):
            m.adapters.set(odd)  # type: ignore[arg-type]
    for name in (["one"], None, 3):
        with pytest.raises(UsageError, match="there is no adapter"):
            m.adapters.use(name)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"no adapter 'three'[^$]*one of one"):
        m.adapters.use("three")
    assert m.adapters.scales == {"one": 1.0}


@pytest.mark.parametrize("given", [(), 3, ["one"], [("one",)], [("one", "1.0")], [("one", 1e39)], [(3, 1.0)]])
def test_a_wish_that_is_no_wish(given: Any, base: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(base, adapter=given)
    assert caught.value.field == "adapter"


def test_one_directory_twice(base: Path, two: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="given twice"):
        load(base, adapter=[(two[0], 1.0), (two[0], 0.5)])


def test_two_of_one_name_are_called_by_their_paths(base: Path, tmp_path: Path) -> None:
    paths = [adapter(tmp_path / part / "final", pair(), lora_alpha=n) for n, part in enumerate("ab", 1)]
    m = load(base, adapter=[(path, 1.0) for path in paths])
    assert m.adapters is not None and list(m.adapters.scales) == [str(path) for path in paths]


def test_saving_with_adapters_is_refused(base: Path, two: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has adapters beside"):
        load(base, adapter=two[0]).save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_a_directory_without_an_adapter(base: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"neither adapter_model\.safetensors nor adapters\.safetensors"):
        load(base, adapter=tmp_path / "empty")
    with pytest.raises(CheckpointError, match="there is no such directory"):
        convert_adapter(tmp_path / "nowhere", tmp_path / "out", base=base)


def test_generate_with_an_adapter(cli: Cli, tmp_path: Path) -> None:
    base = runnable(tmp_path / "base")
    loud = {name: 40 * array for name, array in pair(V, rows=16).items()}
    one, wrong = adapter(tmp_path / "one", loud), adapter(tmp_path / "wrong", pair(f"{ATTENTION}.none"))
    arguments = ("generate", base, "-p", "some text", "--max-tokens", 8, "--json")
    plain = cli(*arguments)
    assert cli(*arguments, "--adapter", one).data["text"] != plain.data["text"]
    refused = cli(*arguments, "--adapter", one, "--adapter", wrong)
    assert refused.code == 1
    assert f"{ATTENTION}.none.lora_A.weight" in refused.err + refused.out
