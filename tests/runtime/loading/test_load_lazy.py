"""load(lazy=True): the same model, each module's parameters read when it is first run."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx.utils import tree_flatten

from tests.cases.fixtures import contents
from tests.runtime.models import config_of, write_model
from weightloom.engine import CheckpointError, PlanError
from weightloom.engine.errors import UsageError
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.modules.deferring import Deferring, bind_lazily
from weightloom.runtime import load

TOKENS = mx.array([[1, 5, 9, 200, 3]])
MODEL = "model.safetensors"


def unread(model: nn.Module) -> list[str]:
    return [path for path, each in model.named_modules() if isinstance(each, Deferring)]


def test_a_lazy_model_is_the_eager_one_when_it_was_run(tmp_path: Path) -> None:
    write_model(tmp_path, "qwen3_moe")
    eager, lazy = load(tmp_path), load(tmp_path, lazy=True)
    assert len(unread(lazy.model)) > 5
    assert mx.array_equal(lazy.model(TOKENS), eager.model(TOKENS)).item()
    held = parameters(eager.model)
    found = parameters(lazy.model)
    assert list(found) == list(held) and not unread(lazy.model)
    assert all(mx.array_equal(found[name], held[name]).item() for name in held)
    assert [type(each) for _, each in lazy.model.named_modules()] == [type(e) for _, e in eager.model.named_modules()]


def test_a_module_that_is_not_run_is_not_read(tmp_path: Path) -> None:
    m = load(write_model(tmp_path, "llama"), lazy=True)
    before = unread(m.model)
    m.model.eval()
    assert "Linear" in repr(m.model) and unread(m.model) == before
    _ = m.model.model.layers[0](mx.zeros((1, 2, 32)), None, m.model.make_cache()[0])
    assert {path for path in before if path not in unread(m.model)} == {
        path for path in before if path.startswith("model.layers.0.")
    }


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.weight,
        lambda m: m["weight"],
        lambda m: m.get("weight"),
        lambda m: m.pop("weight"),
        lambda m: dict(m.items())["weight"],
        lambda m: dict(tree_flatten(m))["weight"],
        lambda m: next(iter(m.values())),
        lambda m: m.copy()["weight"],
        lambda m: copy.deepcopy(m).weight,
        lambda m: m.parameters()["weight"],
        lambda m: m.trainable_parameters()["weight"],
    ],
)
def test_every_way_to_a_parameter_reads_it(tmp_path: Path, ask: object) -> None:
    write_model(tmp_path, "llama")
    wanted = load(tmp_path).model.model.norm.weight
    norm = load(tmp_path, lazy=True).model.model.norm
    assert isinstance(norm, Deferring) and "weight" in norm and callable(ask)
    assert mx.array_equal(ask(norm), wanted).item()
    assert not isinstance(norm, Deferring)


def test_a_parameter_that_is_set_is_not_read(tmp_path: Path) -> None:
    m = load(write_model(tmp_path, "llama"), lazy=True)
    (tmp_path / MODEL).write_bytes(b"")
    m.model.model.norm.weight = mx.ones((32,))
    assert m.model.model.norm.weight.tolist() == [1] * 32 and type(m.model.model.norm) is nn.RMSNorm
    with pytest.raises(CheckpointError):
        m.model(TOKENS)


def test_an_unread_parameter_looks_as_it_will_be(tmp_path: Path) -> None:
    """What does not go through Python sees an array of the right shape, and no number that could be taken for one."""
    norm = load(write_model(tmp_path, "llama"), lazy=True).model.model.norm
    stand_in = dict.__getitem__(norm, "weight")
    assert (stand_in.shape, stand_in.dtype) == ((32,), mx.float32) and mx.isnan(stand_in).all().item()


def test_a_lazy_model_is_saved_over_its_own_files(tmp_path: Path) -> None:
    write_model(tmp_path, "qwen3_moe")
    before = contents(tmp_path)
    m = load(tmp_path, lazy=True)
    m.save(tmp_path, overwrite=True)
    assert contents(tmp_path) == before and not unread(m.model)
    m.save(tmp_path, overwrite=True)
    assert contents(tmp_path) == before


def test_the_directory_is_overwritten_while_a_lazy_model_is_alive(tmp_path: Path) -> None:
    """By another model's save, which writes new files: what is read later is what was opened."""
    write_model(tmp_path, "llama")
    wanted = load(tmp_path).model(TOKENS)
    lazy, other = load(tmp_path, lazy=True), load(tmp_path)
    other.model.update({"model": {"norm": {"weight": mx.zeros((32,))}}})
    other.save(tmp_path, overwrite=True)
    assert mx.array_equal(lazy.model(TOKENS), wanted).item()
    assert not mx.array_equal(load(tmp_path).model(TOKENS), wanted).item()


def test_a_cast_and_a_tied_head(tmp_path: Path) -> None:
    write_model(tmp_path, "llama", config_of("llama", tie_word_embeddings=True))
    eager, lazy = load(tmp_path, "bfloat16"), load(tmp_path, "bfloat16", lazy=True)
    assert mx.array_equal(lazy.model(TOKENS), eager.model(TOKENS)).item()
    assert {array.dtype for array in parameters(lazy.model).values()} == {mx.bfloat16}


def test_what_a_lenient_load_lacks_is_there_at_once(tmp_path: Path) -> None:
    write_model(tmp_path, "llama")
    (tmp_path / "config.json").write_text(json.dumps(config_of("llama", attention_bias=True)))
    m = load(tmp_path, lazy=True, strict=False)
    assert m.report.missing and set(m.report.missing) < parameters(m.model).keys()
    assert mx.isfinite(m.model(TOKENS)).all().item()


def test_lazy_and_sharding_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lazy and sharding") as caught:
        load(write_model(tmp_path, "llama"), lazy=True, sharding="tensor")
    assert caught.value.field == "lazy"


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    m = load(write_model(tmp_path, "llama"))
    with pytest.raises(PlanError, match="arrays a parameter"):
        bind_lazily(nn.Linear(2, 2), m.plan.lazy(), kept={})


def test_arrays_in_a_list_of_a_module_are_read_at_once(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [mx.zeros((2,)), mx.zeros((3,))]
            self.whole = mx.zeros((1,))

    from tests.cases.fixtures import const, plan_of, write

    write(tmp_path / MODEL, {"parts.0": const(1, 2), "parts.1": const(2, 3), "whole": const(3, 1)})
    module, lazy = Odd(), plan_of(tmp_path).lazy()
    bind_lazily(module, lazy, kept={})
    assert lazy.unread == {"whole"}
    assert [part.tolist() for part in module.parts] == [[1, 1], [2, 2, 2]] and module.whole.tolist() == [3]
