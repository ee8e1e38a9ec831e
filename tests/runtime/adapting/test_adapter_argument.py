"""An adapter and its scale on the command line: DIR:SCALE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cases.fixtures import filled
from tests.cases.test_adapter_load import ATTENTION, adapter, delta, pair
from tests.runtime.adapting.test_fusing import NAME, arrays_in
from tests.runtime.models import runnable, sentence_files, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import UsageError
from weightloom.runtime.adapting.adapter_argument import weighted


@pytest.mark.parametrize(
    ("text", "path", "scale"),
    [
        ("lora", "lora", 1.0),
        ("lora:0.5", "lora", 0.5),
        ("lora:-2e-1", "lora", -0.2),
        ("some:where:3", "some:where", 3.0),
    ],
)
def test_the_last_colon_splits(text: str, path: str, scale: float) -> None:
    assert weighted(text) == (Path(path), scale)


def test_a_path_that_is_there_wins(tmp_path: Path) -> None:
    for name in ("run:2", "a:b:0.5"):
        (tmp_path / name).mkdir()
        assert weighted(str(tmp_path / name)) == (tmp_path / name, 1.0)
        assert weighted(f"{tmp_path / name}:0.25") == (tmp_path / name, 0.25)


@pytest.mark.parametrize(
    "text", ["", ":", ":0.5", "lora:", "lora:nan", "lora:inf", "lora:-inf", "lora:x", "lora:1e999"]
)
def test_what_is_no_scale_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        weighted(text)
    assert caught.value.field == "adapter" and caught.value.exit_code == 2


def test_scales_are_fused_and_never_slide(cli: Cli, tmp_path: Path) -> None:
    """C61: each scale goes with its own path, in any order; one that is not there stops all, by name."""
    base = write_model(tmp_path / "base", "llama")
    one, two = adapter(tmp_path / "one", pair()), adapter(tmp_path / "two", pair(seed=2))
    arguments = {"first": (f"{one}:0.3", f"{two}:-1"), "second": (f"{two}:-1", f"{one}:0.3")}
    before = np.array(arrays_in(base)[NAME])
    for name, (left, right) in arguments.items():
        done = cli("convert", base, tmp_path / name, "--adapter", left, "--adapter", right)
        assert done.code == 0, done.err
        wanted = before + delta(pair(), 0.3 * 2) + delta(pair(seed=2), -2)
        assert np.allclose(np.array(arrays_in(tmp_path / name)[NAME]), wanted, atol=1e-4)
    refused = cli("convert", base, tmp_path / "none", "--adapter", f"{tmp_path / 'missing'}:0.3", "--adapter", one)
    assert refused.code == 2 and str(tmp_path / "missing") in refused.err and not (tmp_path / "none").exists()


def test_a_scale_of_zero_fuses_nothing(cli: Cli, tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "llama")
    made = adapter(tmp_path / "one", pair())
    assert cli("convert", base, tmp_path / "same", "--adapter", f"{made}:0").code == 0
    before, after = arrays_in(base), arrays_in(tmp_path / "same")
    assert all(np.array_equal(np.array(before[name]), np.array(after[name])) for name in before)


def test_generate_takes_scales(cli: Cli, tmp_path: Path) -> None:
    base = runnable(tmp_path / "base")
    loud = {name: 40 * array for name, array in pair(f"{ATTENTION}.v_proj", rows=16).items()}
    made = adapter(tmp_path / "one", loud)
    arguments = ("generate", base, "-p", "some text", "--max-tokens", 8, "--json")
    plain = cli(*arguments).data["text"]
    assert cli(*arguments, "--adapter", f"{made}:0").data["text"] == plain
    assert cli(*arguments, "--adapter", f"{made}:1").data["text"] == cli(*arguments, "--adapter", made).data["text"]
    assert cli(*arguments, "--adapter", f"{made}:1").data["text"] != plain
    assert cli(*arguments, "--adapter", f"{made}:nan").code == 2


def test_embed_takes_scales(cli: Cli, tmp_path: Path) -> None:
    base = runnable(tmp_path / "base", "bert")
    refused = cli("embed", base, "a text", "--adapter", f"{tmp_path}:nan")
    assert refused.code == 2 and "scale" in refused.err
    missing = cli("embed", base, "a text", "--adapter", f"{tmp_path / 'missing'}:0.5")
    assert missing.code == 2 and str(tmp_path / "missing") in missing.err


def test_embed_puts_adapters_beside_an_encoder(cli: Cli, tmp_path: Path) -> None:
    base = sentence_files(runnable(tmp_path / "base", "bert"))
    place = "base_model.model.encoder.layer.0.attention.self.query"
    factors = filled({f"{place}.lora_A.weight": (2, 16), f"{place}.lora_B.weight": (16, 2)}, seed=1)
    made = adapter(tmp_path / "one", factors, target_modules=["query"])
    arguments = ("embed", base, "a text", "another", "--json")
    plain = cli(*arguments).data["embeddings"]
    assert cli(*arguments, "--adapter", f"{made}:0").data["embeddings"] == plain
    changed = cli(*arguments, "--adapter", f"{made}:-3")
    assert changed.code == 0 and changed.data["embeddings"] != plain
    fused = cli(*arguments, "--adapter", f"{made}:-3", "--fuse").data["embeddings"]
    assert np.allclose(np.array(fused), np.array(changed.data["embeddings"]), atol=1e-4)
