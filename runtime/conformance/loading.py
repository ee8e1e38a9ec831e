"""What a load owes: the parameters as written, by every way, and a report that lacks nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import mlx.core as mx
import numpy as np

from weightloom.engine import Sharding
from weightloom.engine.carrier import memory_of, spec_of
from weightloom.engine.errors import PlanError, WeightloomError
from weightloom.engine.planning.sharding import Kind
from weightloom.plugins.modules.binding import parameters
from weightloom.runtime.conformance.answering import answers
from weightloom.runtime.conformance.comparing import assert_close, assert_same_arrays, stored_arrays
from weightloom.runtime.conformance.sample import Array
from weightloom.runtime.conformance.subject import Subject
from weightloom.runtime.loading.loading import load
from weightloom.runtime.opening.layout_record import MLX

RANKS = 2


def parameters_are_as_written(subject: Subject) -> None:
    """Every parameter comes back bit for bit; nothing is missing, unexpected or left out."""
    m = subject.loaded
    assert_same_arrays(parameters(m.model), subject.params)
    assert not m.report.missing and not m.report.unexpected, m.report


def elements_are_those_of_the_files(subject: Subject) -> None:
    """Tensors that rules only rename or move have their elements in the parameters, none changed, none twice."""
    m = subject.loaded
    stored, params, compared = stored_arrays(subject.folder), parameters(m.model), 0
    for group in m.plan.groups:
        whole = sum(spec.nbytes for _, spec in group.taken) == sum(spec.nbytes for _, spec in group.made)
        if group.program.is_structural and whole:
            found = _elements([params[name] for name in group.targets], group.program.is_identity)
            wanted = _elements([stored[name] for name in group.sources], group.program.is_identity)
            assert np.array_equal(found, wanted), f"{group.sources} became {group.targets} with other elements"
            compared += 1
    assert compared, "no tensor is only renamed or moved"


def _elements(arrays: list[mx.array], in_order: bool) -> Array:
    """Give the bits of all elements, sorted where their order is free."""
    parts = [np.frombuffer(bytes(memory_of(array)), f"u{array.itemsize}") for array in arrays]
    whole = np.concatenate(parts)
    return whole if in_order else np.sort(whole)


def inference_is_exact(subject: Subject) -> None:
    """The plan foretells each parameter's dtype and shape from headers alone."""
    plan = subject.loaded.plan
    made = {name: spec_of(array) for name, array in plan.load().items()}
    told = {name: (spec.dtype, spec.shape) for name, spec in plan.params.items()}
    assert {name: (spec.dtype, spec.shape) for name, spec in made.items()} == told


def lazy_is_eager(subject: Subject) -> None:
    """A model whose parameters are read when they are used answers as one that was read at once."""
    lazy, tokens = load(subject.folder, lazy=True), subject.tokens()
    assert_close(answers(lazy.model, tokens), answers(subject.loaded.model, tokens), 0.0)
    assert_same_arrays(parameters(lazy.model), subject.params)


def shards_add_up(subject: Subject) -> None:
    """What two ranks read, put together again, is what one reads; a parameter that cannot be cut is refused by name."""
    plan, kinds = subject.loaded.plan, subject.architecture.sharding
    ranks = [Sharding(rank, RANKS, cast("Mapping[str, Kind]", kinds)) for rank in range(RANKS)]
    try:
        parts = [plan.load(each) for each in ranks]
    except PlanError as error:
        assert error.tensor, f"a refusal that names no parameter: {error}"
        return
    for name, whole in plan.load().items():
        joined = _joined(ranks[0].kind_of(name), [part[name] for part in parts], whole)
        assert mx.array_equal(joined, whole).item(), f"{name}: the parts of {RANKS} ranks do not make the whole"


def _joined(kind: str, parts: list[mx.array], whole: mx.array) -> mx.array:
    """Put parts together: an axis counted from the end, for stacks; a bias has the output axis alone."""
    if parts[0].shape == whole.shape:
        return parts[0]
    last, before = whole.ndim - 1, max(whole.ndim - 2, 0)
    axis = {"row": last, "column": before, "packed": before}.get(kind, 0)
    if kind != "packed":
        return mx.concatenate(parts, axis=axis)
    halves = [half for index in (0, 1) for part in parts for half in [mx.split(part, 2, axis=axis)[index]]]
    return mx.concatenate(halves, axis=axis)


def a_lacking_tensor_is_named(subject: Subject) -> None:
    """Without one of its tensors the checkpoint does not load, and the error names a parameter or the tensor."""
    name = _one_name(subject)
    error = _refusal(_changed(subject, lambda arrays: arrays.pop(name)))
    assert error is not None, f"loads without {name}"
    assert _says(str(error), name, subject), f"{name} is lacking, and the error is: {error}"


def a_stranger_is_named(subject: Subject) -> None:
    """A tensor that no rule and no parameter wants stops the load, by name."""
    error = _refusal(_changed(subject, lambda arrays: arrays.update({"stranger.weight": mx.zeros((2, 3))})))
    assert error is not None and "stranger.weight" in str(error), f"a tensor too many, and the error is: {error}"


def a_wrong_shape_is_named(subject: Subject) -> None:
    """A tensor of another shape stops the load, strict or not."""
    name = _one_name(subject)
    folder = _changed(subject, lambda arrays: arrays.update({name: mx.zeros((*arrays[name].shape, 2))}))
    for strict in (True, False):
        error = _refusal(folder, strict)
        assert error is not None and _says(str(error), name, subject), f"{name} has another shape: {error}"


def _one_name(subject: Subject) -> str:
    """Give a tensor with as many axes as any that becomes a parameter: its lack can be told by either name."""
    plan = subject.loaded.plan
    used = sorted({name for group in plan.groups for name in group.sources})
    return max(used, key=lambda name: len(plan.sources[name].shape))


def _says(text: str, name: str, subject: Subject) -> bool:
    """Whether an error names a tensor, or a parameter that it goes to, as it is or by its template."""
    from weightloom.engine.mapping.shapes import shape_text

    targets = [target for step in subject.loaded.plan.explain(name) for target in step.after]
    return any(each in text or shape_text(each) in text for each in (name, *targets))


def _changed(subject: Subject, change: Callable[[dict[str, mx.array]], object]) -> Path:
    """Write the checkpoint once more with its arrays changed."""
    folder = subject.new_folder()
    shutil.copytree(subject.folder, folder)
    arrays = stored_arrays(folder)
    mx.eval(arrays)
    change(arrays)
    for file in (*folder.glob("*.safetensors"), *folder.glob("*.index.json")):
        file.unlink()
    said = {"format": MLX if subject.sample.layout == MLX else "pt"}
    mx.save_safetensors(str(folder / "model.safetensors"), arrays, said)
    return folder


def _refusal(folder: Path, strict: bool = True) -> WeightloomError | None:
    try:
        load(folder, strict=strict)
    except WeightloomError as error:
        return error
    return None
