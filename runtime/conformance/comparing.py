"""Comparisons of the kit: arrays by their bits, answers to a tolerance, directories by their files' bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import mlx.core as mx
import numpy as np

from weightloom.engine.carrier import memory_of, spec_of
from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.runtime.conformance.sample import Array

# Of what a model answers in two ways: sums in another order differ by less.
EXACT = 1e-4


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


def assert_close(got: Array, wanted: Array, tolerance: float) -> float:
    """Assert answers that differ by no more than `tolerance * max(1, max |wanted|)`; give the largest difference.

    It is given as a part of `max(1, max |wanted|)`, so that the tolerance is what it is held against.
    """
    assert got.shape == wanted.shape, f"shape {got.shape}, expected {wanted.shape}"
    assert np.isfinite(got).all(), "not all answers are finite"
    scale = max(1.0, float(np.abs(wanted).max()))
    most = float(np.abs(got - wanted).max())
    assert most <= tolerance * scale, f"differs by {most:.3g}, allowed {tolerance * scale:.3g}"
    return most / scale


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
    """Read every tensor of a directory's weight files, by MLX's own reader; what is kept beside them is none."""
    files = [file for file in sorted(folder.glob("*.safetensors")) if file.name != KEPT_NAME]
    read = [cast("dict[str, mx.array]", mx.load(str(file))) for file in files]
    return {name: array for arrays in read for name, array in arrays.items()}
