"""One case of a family against its reference: answers, parameters, files, packed matrices."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from tests.families.family import Case, Family
from tests.oracle.families import peers
from weightloom.engine.carrier import memory_of
from weightloom.engine.quantizing.quantization import part_names
from weightloom.runtime.conformance.making import write_arrays
from weightloom.runtime.loading.loading import load
from weightloom.runtime.model import LoadedModel

LENGTH, CHUNK, CHUNKS = 24, 7, 2
BITS, GROUP = 4, 32
FORMS = ("v5", "v4")
RECIPE = Path(__file__).with_name("tiny_4bit.yaml")


@dataclass(frozen=True)
class Compared:
    """How far answers lie from the reference's, each over max(1, max |reference|): whole, through the cache, packed.

    `whole` is for padding behind a row too, where a model takes a mask.
    """

    whole: float
    cached: float
    packed: float

    @property
    def worst(self) -> float:
        """The largest of them."""
        return max(self.whole, self.cached, self.packed)


@dataclass(frozen=True)
class Padded:
    """Rows of unlike length, the mask (2, L) of 0 and 1, and the reference's answers."""

    tokens: np.ndarray[Any, Any]
    mask: np.ndarray[Any, Any]
    answers: np.ndarray[Any, Any]


@dataclass(frozen=True)
class Written:
    """A checkpoint of the reference implementation, and its answers; with padding for models that do not generate."""

    family: Family
    folder: Path
    tokens: np.ndarray[Any, Any]
    answers: np.ndarray[Any, Any]
    padded: Padded | None


def written(family: Family, case: Case, folder: Path) -> Written:
    """Have the reference implementation write a case's checkpoint and answer."""
    peers.write(family, case, folder)
    tokens = np.random.default_rng(7).integers(1, family.config(case)["vocab_size"], (2, LENGTH)).astype(np.int32)
    padded = None if family.task == "generate" else _padded(family, folder, tokens)
    return Written(family, folder, tokens, peers.answers(family, folder, tokens), padded)


def _padded(family: Family, folder: Path, tokens: np.ndarray[Any, Any]) -> Padded:
    mask = (np.arange(LENGTH) < np.array([[LENGTH], [LENGTH // 2]])).astype(np.int32)
    filled = np.where(mask, tokens, peers.config_of(folder).get("pad_token_id") or 0).astype(np.int32)
    return Padded(filled, mask, peers.answers(family, folder, filled, mask))


def in_form(given: Written, form: str) -> Path:
    """Give a directory with the same weights under a config in a form."""
    if form == "v5":
        return given.folder
    folder = given.folder.with_name(f"{given.folder.name}-{form}")
    if not folder.exists():
        shutil.copytree(given.folder, folder)
        config = peers.as_published(peers.config_of(folder), given.family)
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def compare(given: Written, form: str) -> Compared:
    """Compare answers; parameters and a save's bytes are asserted."""
    folder = in_form(given, form)
    m = load(folder)
    assert_same_parameters(m, given)
    assert_saved_as_it_was(m, folder)
    return Compared(
        max(_distance(_answers(m, given.tokens), given.answers), _padded_distance(m, given)),
        _distance(_through_cache(m, given.tokens), given.answers) if given.family.task == "generate" else 0.0,
        _packed(given, m, folder) if form == "v5" else 0.0,
    )


def assert_same_parameters(m: LoadedModel, given: Written) -> None:
    """Assert that parameters with names of the reference's have its bits; where files have others, none may."""
    theirs, compared = peers.state(given.folder), 0
    base = f"{m.architecture.base_model_prefix}."
    for name, array in _parameters(m):
        found = theirs.get(name, theirs.get(name.removeprefix(base)))
        if found is not None and found.shape == array.shape:
            # An architecture with rules of its own may turn matrices on the way.
            as_found = [found, found.T] if m.architecture.rules.rules else [found]
            assert bytes(memory_of(array)) in [each.tobytes() for each in as_found], f"{name}: other values"
            compared += 1
    assert compared or given.family.published, "no parameter has a name of the reference's"


def assert_saved_as_it_was(m: LoadedModel, folder: Path) -> None:
    """Assert that a save has the same bytes."""
    target = folder.with_name(f"{folder.name}-saved")
    m.save(target)
    assert _digests(target) == _digests(folder)
    shutil.rmtree(target)


def _digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.safetensors")}


def _parameters(m: LoadedModel) -> list[tuple[str, mx.array]]:
    from mlx.utils import tree_flatten

    return tree_flatten(m.model.parameters())  # type: ignore[no-any-return]


def _answers(m: LoadedModel, tokens: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.array(m.model(mx.array(tokens)).astype(mx.float32))


def _padded_distance(m: LoadedModel, given: Written) -> float:
    """Compare answers under a mask; hidden states of what is no token are nobody's."""
    if given.padded is None:
        return 0.0
    model: Any = m.model
    found = np.array(model(mx.array(given.padded.tokens), mx.array(given.padded.mask)).astype(mx.float32))
    counts = given.padded.mask.astype(bool) if given.family.task == "embed" else slice(None)
    return _distance(found[counts], given.padded.answers[counts])


def _through_cache(m: LoadedModel, tokens: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Answer in chunks, then token by token."""
    model: Any = m.model
    cache = model.make_cache()
    starts = [*range(0, CHUNKS * CHUNK, CHUNK), *range(CHUNKS * CHUNK, LENGTH)]
    ends = [*starts[1:], LENGTH]
    parts = [model(mx.array(tokens[:, a:b]), cache) for a, b in zip(starts, ends, strict=True)]
    return np.array(mx.concatenate(parts, axis=1).astype(mx.float32))


def _distance(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    assert got.shape == wanted.shape, f"{got.shape}, expected {wanted.shape}"
    assert np.isfinite(got).all(), "not all answers are finite"
    return float(np.abs(got - wanted).max() / max(1.0, np.abs(wanted).max()))


def _packed(given: Written, m: LoadedModel, folder: Path) -> float:
    """Quantize on load, and compare with the reference on the numbers that the words stand for."""
    packed = load(folder, quantize=str(RECIPE))
    arrays, plain = dict(_parameters(packed)), dict(_parameters(m))
    dense = {name: _numbers(name, array, arrays) for name, array in plain.items()}
    changed = sum(not mx.array_equal(dense[name], array).item() for name, array in plain.items())
    assert changed, "nothing was packed"
    place = folder.with_name(f"{folder.name}-dense")
    write_arrays(m.architecture, peers.config_of(folder), "hf", dense, place)
    return _distance(_answers(packed, given.tokens), peers.answers(given.family, place, given.tokens))


def _numbers(name: str, plain: mx.array, arrays: dict[str, mx.array]) -> mx.array:
    """Give a parameter as it counts in the packed model."""
    words, scales, biases = (arrays.get(part) for part in part_names(name))
    if scales is None or words is None:
        return plain
    return mx.dequantize(words, scales, biases, GROUP, BITS).astype(plain.dtype)
