"""Surgery files, and the same surgery on every route: loading, lazily too, converting, and the dry run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases.fixtures import contents, filled, write
from tests.cases.test_adapter_load import adapter, pair
from tests.runtime.models import config_of, runnable, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import NotInvertible, PlanError, StorageError, UsageError, WeightloomError
from weightloom.plugins.modules.binding import parameters
from weightloom.rules.problems import RuleFileError
from weightloom.runtime import load
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.surgery.surgery import asked_surgery
from weightloom.runtime.surgery.surgery_file import read_surgery

O_PROJ = "model.layers.0.self_attn.o_proj.weight"
SCALE = "version: 1\noperations:\n- op: scale\n  pattern: '**.o_proj.weight'\n  factor: 0.3\n"
EXPERTS = "version: 1\noperations:\n- op: scale\n  pattern: '**.experts.gate_up_proj'\n  factor: 2.0\n"


def surgery(folder: Path, text: str = SCALE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "surgery.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def arrays(folder: Path) -> dict[str, mx.array]:
    found = mx.load(str(folder / "model.safetensors"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("version: 2\noperations: []", "1:10", "version is 2"),
        ("version: true\noperations: []", "1:10", "version is True"),
        ("operations: []", "1:1", "lacks 'version'"),
        ("version: 1\noperations: {}", "2:13", "operations is a mapping"),
        ("version: 1\nextra: 1\noperations: []", "2:1", "unknown key 'extra'"),
        (SCALE + "  alpah: 1.0\n", "6:3", "unknown key 'alpah'"),
        (SCALE.replace("scale", "scael"), "3:7", "did you mean 'scale'"),
        (SCALE.replace("0.3", ".nan"), "5:11", "factor is"),
        (SCALE.replace("0.3", "true"), "5:11", "factor is True"),
        (SCALE.replace("'**.o_proj.weight'", "'a[0]'"), "4:12", "has one of"),
        (SCALE + "  side: disk\n", "6:9", "side is 'disk'"),
        (SCALE.replace("scale", "add").replace("factor: 0.3", "source: nowhere"), "5:11", "there is no"),
        (SCALE.replace("scale", "replace").replace("factor: 0.3", "source: .\n  source_key: '*.a'"), "6:15", "stars"),
        (SCALE.replace("scale", "interpolate").replace("factor", "ratio"), "3:3", "lacks 'source_b'"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_place(tmp_path: Path, text: str, place: str, said: str) -> None:
    path = surgery(tmp_path, text)
    with pytest.raises(RuleFileError) as caught:
        read_surgery(path)
    assert f"{path}:{place}: " in str(caught.value)
    assert said in str(caught.value)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_only_our_errors_come_out_of_a_mutated_file(tmp_path: Path, data: st.DataObject) -> None:
    text = SCALE + "- {op: interpolate, pattern: '**', source_b: x, ratio: 0.3, method: slerp, side: file}\n"
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 8)))
    cut = text[:start] + data.draw(st.text(max_size=6)) + text[stop:]
    path = tmp_path / "mutated.yaml"
    path.write_bytes(cut.encode("utf-8", "surrogatepass"))
    with suppress(WeightloomError):
        read_surgery(path)


def test_the_argument_comes_before_the_variable(tmp_path: Path) -> None:
    one, other = surgery(tmp_path / "one"), surgery(tmp_path / "other")
    said = {"WEIGHTLOOM_SURGERY": str(other)}
    found = [asked_surgery(given, said) for given in (one, None)]
    assert [each and each.path for each in found] == [one, other]
    assert asked_surgery(None, {}) is None
    with pytest.raises(UsageError):
        asked_surgery(3, {})
    with pytest.raises(StorageError):
        asked_surgery(tmp_path / "none.yaml", {})


@pytest.mark.parametrize("lazy", [False, True])
def test_a_model_is_loaded_changed(tmp_path: Path, lazy: bool) -> None:
    source = write_model(tmp_path / "m", "llama")
    m = load(source, surgery=surgery(tmp_path), lazy=lazy)
    was, now = arrays(source), parameters(m.model)
    assert mx.array_equal(now[O_PROJ], was[O_PROJ] * 0.3).item()
    assert all(mx.array_equal(now[name], was[name]).item() for name in was if "o_proj" not in name)
    assert m.altered and any("surgery" in note for note in m.notes)


def test_the_variable_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_model(tmp_path / "m", "llama")
    monkeypatch.setenv("WEIGHTLOOM_SURGERY", str(surgery(tmp_path)))
    assert mx.array_equal(parameters(load(source).model)[O_PROJ], arrays(source)[O_PROJ] * 0.3).item()


@pytest.mark.parametrize(("name", "text"), [("llama", SCALE), ("mixtral", EXPERTS)])
@pytest.mark.parametrize("layout", ["original", "hf", "mlx"])
@pytest.mark.parametrize("dtype", [None, "BF16"])
def test_converting_and_loading_give_the_same(
    tmp_path: Path, name: str, text: str, layout: str, dtype: str | None
) -> None:
    source, file = write_model(tmp_path / "m", name), surgery(tmp_path, text)
    m = load(source, dtype, surgery=file)
    convert(source, Order(tmp_path / "out", layout, dtype, surgery=read_surgery(file)), Wish())
    again = parameters(load(tmp_path / "out").model)
    assert all(mx.array_equal(again[key], value).item() for key, value in parameters(m.model).items())
    assert "weightloom-kept.safetensors" not in contents(tmp_path / "out")


def test_what_was_changed_is_saved_as_a_new_checkpoint_alone(tmp_path: Path) -> None:
    m = load(write_model(tmp_path / "m", "llama"), surgery=surgery(tmp_path))
    with pytest.raises(NotInvertible, match="surgery"):
        m.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for layout in ("hf", "mlx"):
        m.save(tmp_path / layout, layout=layout)
        assert "weightloom-kept.safetensors" not in contents(tmp_path / layout)
        assert mx.array_equal(parameters(load(tmp_path / layout).model)[O_PROJ], parameters(m.model)[O_PROJ]).item()


def test_a_donor_is_read_by_the_rules_of_the_model(tmp_path: Path) -> None:
    source = write_model(tmp_path / "m", "mixtral")
    donor = {name: -np.array(array) for name, array in arrays(source).items()}
    (tmp_path / "d").mkdir()
    write(tmp_path / "d" / "model.safetensors", donor)
    text = EXPERTS.replace("scale", "add").replace("factor: 2.0", "source: d\n  alpha: 0.5")
    now = parameters(load(source, surgery=surgery(tmp_path, text)).model)
    name = "model.layers.0.mlp.experts.gate_up_proj"
    assert mx.array_equal(now[name], parameters(load(source).model)[name] * 0.5).item()


def test_all_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    source = write_model(tmp_path / "m", "llama")
    write(tmp_path / "d.safetensors", filled({O_PROJ: (3, 3)}))
    wrong = surgery(tmp_path, SCALE + f"- {{op: add, pattern: '{O_PROJ}', source: d.safetensors}}\n")
    with pytest.raises(PlanError) as caught:
        convert(source, Order(tmp_path / "out", surgery=read_surgery(wrong)), Wish())
    assert caught.value.file == f"{wrong}:6:3"
    assert not (tmp_path / "out").exists()


def test_check_says_what_would_change(cli: Cli, tmp_path: Path) -> None:
    source, file = write_model(tmp_path / "m", "llama"), surgery(tmp_path)
    ran = cli("surgery", "check", file, source)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].startswith(f"scale        {O_PROJ}  F32 [")
    data = cli("surgery", "check", file, source, "--json").data
    assert data["command"] == "surgery check"
    assert {each["at"] for each in data["changes"]} == {f"{file}:3:3"}
    assert cli("surgery", "check", surgery(tmp_path, SCALE.replace("o_proj", "x_proj")), source).code == 1


def test_generate_and_convert_take_it(cli: Cli, tmp_path: Path) -> None:
    source, file = runnable(tmp_path / "m"), surgery(tmp_path)
    ran = cli("generate", source, "-p", "a", "--max-tokens", 1, "--surgery", file, "--json")
    assert ran.code == 0
    assert any("surgery" in note for note in ran.data["notes"])
    ran = cli("convert", source, tmp_path / "out", "--surgery", file, "--json")
    assert (ran.code, ran.data["surgery"]) == (0, str(file))
    assert mx.array_equal(arrays(tmp_path / "out")[O_PROJ], arrays(source)[O_PROJ] * 0.3).item()


def test_verify_says_that_there_are_no_bytes_to_come_back_to(cli: Cli, tmp_path: Path) -> None:
    source, file = write_model(tmp_path / "m", "llama"), surgery(tmp_path)
    assert cli("verify", source).code == 0
    ran = cli("verify", source, "--surgery", file)
    assert ran.code == 1
    assert "surgery changed the values: scale '**.o_proj.weight'" in ran.err


def test_a_tensor_under_a_second_name_is_named_by_its_first(tmp_path: Path) -> None:
    source = write_model(tmp_path / "m", "llama", config_of("llama", tie_word_embeddings=True))
    both = SCALE.replace("**.o_proj.weight", "**.embed_tokens.weight")
    now = parameters(load(source, surgery=surgery(tmp_path, both)).model)["model.embed_tokens.weight"]
    assert mx.array_equal(now, arrays(source)["model.embed_tokens.weight"] * 0.3).item()
    with pytest.raises(PlanError):
        load(source, surgery=surgery(tmp_path, SCALE.replace("**.o_proj.weight", "lm_head.weight")))


def test_adapters_are_fused_before_and_refused_beside(tmp_path: Path) -> None:
    source, beside = write_model(tmp_path / "m", "llama"), adapter(tmp_path / "adapter", pair())
    file = surgery(tmp_path, SCALE.replace("o_proj", "q_proj"))
    with pytest.raises(UsageError, match="adapters and surgery"):
        load(source, adapter=beside, surgery=file)
    convert(source, Order(tmp_path / "fused", adapters=((beside, 1.0),)), Wish())
    convert(source, Order(tmp_path / "both", adapters=((beside, 1.0),), surgery=read_surgery(file)), Wish())
    name = O_PROJ.replace("o_proj", "q_proj")
    fused, both = arrays(tmp_path / "fused")[name], arrays(tmp_path / "both")[name]
    assert not mx.array_equal(fused, arrays(source)[name]).item()
    assert mx.array_equal(both, fused * 0.3).item()
