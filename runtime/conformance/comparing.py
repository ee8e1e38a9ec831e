"""Comparisons of the kit: arrays by their bits, answers to a tolerance, directories by their files' bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import mlx.core as mx
import numpy as np

from weightloom.engine.carrier import memory_of, spec_of
from weightloom.runtime.conformance.sample import Array


def assert_same_arrays(got: Mapping[str, mx.array], wanted: Mapping[str, mx.array]) -> None:
    """Assert the same names, shapes, dtypes and bits; NaNs and signs of zeros count."""
    assert sorted(got) == sorted(wanted), f"{sorted(set(got) ^ set(wanted))[:10]} are on one side only"
    for name, array in wanted.items():
        assert spec_of(got[name]) == spec_of(array), f"{name}: {spec_of(got[name])}, expected {spec_of(array)}"
        assert bytes(memory_of(got[name])) == bytes(memory_of(array)), f"{name}: other values"


def assert_same_but_rounded(got: Mapping[str, mx.array], wanted: Mapping[str, mx.array]) -> None:
    """Assert the same names, shapes and dtypes, and values that are the same or as near as one rounding leaves them."""
    assert sorted(got) == sorted(wanted), f"{sorted(set(got) ^ set(wanted))[:10]} are on one side only"
    for name, array in wanted.items():
        assert spec_of(got[name]) == spec_of(array), f"{name}: {spec_of(got[name])}, expected {spec_of(array)}"
        if bytes(memory_of(got[name])) != bytes(memory_of(array)):
            # What is stored as 1 + w keeps of w what is left of the bits of 1.
            assert_close(as_numpy(got[name]), as_numpy(array), 2 * float(mx.finfo(array.dtype).eps))


def assert_close(got: Array, wanted: Array, tolerance: float) -> None:
    """Assert answers that differ by no more than `tolerance * max(1, max |wanted|)`."""
    assert got.shape == wanted.shape, f"shape {got.shape}, expected {wanted.shape}"
    assert np.isfinite(got).all(), "not all answers are finite"
    most, allowed = float(np.abs(got - wanted).max()), tolerance * max(1.0, float(np.abs(wanted).max()))
    assert most <= allowed, f"differs by {most:.3g}, allowed {allowed:.3g}"


def assert_same_weights(got: Path, wanted: Path) -> None:
    """Assert that two directories hold the same weight files and index, byte for byte."""
    ours, theirs = _weights(got), _weights(wanted)
    assert sorted(ours) == sorted(theirs), f"files {sorted(ours)}, expected {sorted(theirs)}"
    assert not [name for name in ours if ours[name] != theirs[name]], "weight files differ"


def _weights(folder: Path) -> dict[str, bytes]:
    found = [*folder.glob("*.safetensors"), *folder.glob("*.index.json")]
    return {path.name: path.read_bytes() for path in found}


def as_numpy(array: mx.array) -> Array:
    """Give an array of any float type as float32."""
    return np.array(array.astype(mx.float32))


def stored_arrays(folder: Path) -> dict[str, mx.array]:
    """Read every tensor of a directory's weight files, by MLX's own reader."""
    files = [cast("dict[str, mx.array]", mx.load(str(file))) for file in sorted(folder.glob("*.safetensors"))]
    return {name: array for arrays in files for name, array in arrays.items()}
