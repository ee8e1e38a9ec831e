"""When parameters are read: eager, but for the towers that a text prompt does not run; and as a variable says."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from tests.cases.fixtures import contents, write
from tests.runtime.loading.seeing import SEEN, SEEN_BYTES, install_seeing, write_seeing
from tests.runtime.models import write_model
from tests.runtime.support import Cli
from weightloom.engine import CheckpointError, Plan, Tie
from weightloom.engine.errors import UsageError
from weightloom.engine.mapping.ruleset import RuleSet
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.modules.deferring import Deferring
from weightloom.runtime import load
from weightloom.runtime.loading.ranks import bytes_read

TOKENS = mx.array([[1, 5, 9]])
PIXELS = mx.ones((1, 3, 4))
VARIABLE = "WEIGHTLOOM_MATERIALIZE"


def unread(model: nn.Module) -> set[str]:
    return {path for path, each in model.named_modules() if isinstance(each, Deferring)}


TOWERS = {name.rpartition(".")[0] for name in SEEN}


@pytest.fixture
def seeing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install_seeing(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delenv(VARIABLE, raising=False)
    return write_seeing(tmp_path / "model")


def test_a_load_reads_no_byte_of_a_tower(seeing: Path) -> None:
    """What the system counts: an eager load reads as much more as the towers have."""
    load(seeing)
    read = []
    for lazy in (None, False):
        before = bytes_read()
        load(seeing, lazy=lazy)
        after = bytes_read()
        if before is None or after is None:
            pytest.skip("the system does not count what is read")
        read.append(after - before)
    # The counter itself is a file, whose length varies by some digits.
    assert read[1] - read[0] == pytest.approx(SEEN_BYTES, abs=32)


def test_a_text_prompt_reads_no_byte_of_a_tower(seeing: Path) -> None:
    """Their bytes may be ruined after the load: text runs, an image is refused."""
    wanted = load(seeing, lazy=False).model(TOKENS)
    m = load(seeing)
    assert unread(m.model) == TOWERS
    size = (seeing / "model.safetensors").stat().st_size
    with (seeing / "model.safetensors").open("r+b") as file:
        file.truncate(size - SEEN_BYTES)
    assert mx.array_equal(m.model(TOKENS), wanted).item() and unread(m.model) == TOWERS
    with pytest.raises(CheckpointError):
        m.model(TOKENS, pixels=PIXELS)


def test_an_image_reads_the_towers_and_gives_what_an_eager_model_gives(seeing: Path) -> None:
    m, eager = load(seeing), load(seeing, lazy=False)
    assert not unread(eager.model)
    assert mx.array_equal(m.model(TOKENS, pixels=PIXELS), eager.model(TOKENS, pixels=PIXELS)).item()
    assert not unread(m.model)
    held = parameters(eager.model)
    assert all(mx.array_equal(array, held[name]).item() for name, array in parameters(m.model).items())


def test_a_model_with_unread_towers_is_saved_whole(seeing: Path, tmp_path: Path) -> None:
    m = load(seeing)
    m.save(tmp_path / "again")
    weights = "model.safetensors"
    assert contents(tmp_path / "again")[weights] == contents(seeing)[weights]


def test_a_cast_is_of_the_towers_too(seeing: Path) -> None:
    m = load(seeing, "bfloat16")
    assert unread(m.model) == TOWERS
    assert {array.dtype for array in parameters(m.model).values()} == {mx.bfloat16}


def test_what_a_tower_shares_with_the_text_is_read_with_it(seeing: Path) -> None:
    """The text model's array is there anyway, and stays one with the tower's."""
    file = {k: np.array(v) for k, v in mx.load(str(seeing / "model.safetensors")).items() if k != "projector.bias"}
    write(seeing / "model.safetensors", file)
    m = load(seeing, rules=RuleSet([Tie(r"^projector\.bias$", "text.model.norm.weight")]))
    assert m.model.projector.bias is m.model.text.model.norm.weight and unread(m.model) == TOWERS
    assert mx.isfinite(m.model(TOKENS, pixels=PIXELS)).all().item() and not unread(m.model)


@pytest.mark.parametrize(
    ("value", "lazy", "wanted"),
    [
        (None, None, "towers"),
        ("", None, "towers"),
        ("eager", None, "none"),
        ("lazy", None, "all"),
        ("lazy", False, "none"),
        ("eager", True, "all"),
        (None, False, "none"),
    ],
)
def test_the_variable_decides_unless_the_caller_does(
    seeing: Path, monkeypatch: pytest.MonkeyPatch, value: str | None, lazy: bool | None, wanted: str
) -> None:
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    model = load(seeing, lazy=lazy).model
    modules = {path for path, each in model.named_modules() if any(isinstance(v, mx.array) for v in dict.values(each))}
    assert unread(model) == {"towers": TOWERS, "none": set(), "all": modules}[wanted]


@pytest.mark.parametrize("lazy", [None, True, False])
def test_another_value_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, lazy: bool | None
) -> None:
    path = write_model(tmp_path, "llama")
    monkeypatch.setenv(VARIABLE, "lasy")
    with pytest.raises(UsageError, match="WEIGHTLOOM_MATERIALIZE is 'lasy'") as caught:
        load(path, lazy=lazy)
    assert caught.value.field == VARIABLE and "lazy or eager" in str(caught.value)
    assert cli("generate", path, "-p", "a").code == 2


def test_the_variable_and_ranks_exclude_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "lazy")
    with pytest.raises(UsageError, match="lazy and sharding") as caught:
        load(write_model(tmp_path, "llama"), sharding="tensor")
    assert VARIABLE in str(caught.value)


def test_without_towers_all_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded means loaded: the files may go."""
    monkeypatch.delenv(VARIABLE, raising=False)
    m = load(write_model(tmp_path, "mixtral"))
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert mx.isfinite(m.model(TOKENS)).all().item() and isinstance(m.plan, Plan)
