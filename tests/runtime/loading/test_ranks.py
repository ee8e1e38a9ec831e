"""Several processes, one model: the same logits and tokens as one, and each holds its part."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from tests.runtime.loading.test_widening import packed_llama
from tests.runtime.models import config_of, runnable, write_model
from tests.runtime.quantizing.models import packable
from tests.runtime.ranks import ask_ranks, free_ports, run_ranks
from tests.runtime.support import Cli
from weightloom.engine.errors import UsageError
from weightloom.runtime import load
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert
from weightloom.runtime.quantizing.wish import asked_quantizing
from weightloom.runtime.running.decoding import generate_ids

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "run-in-several-processes.md"
SCRIPT = str(Path(__file__).with_name("rank_logits.py"))
EXPERTS = {r"experts\.(gate_up_proj|down_proj)": "expert"}
TIED = config_of("llama", tie_word_embeddings=True)
BIASED = config_of("llama", attention_bias=True, mlp_bias=True, num_hidden_layers=2)


def parts(
    path: Path, how: str, size: int = 2, temperature: float = 0.0, dtype: str | None = None
) -> list[dict[str, Any]]:
    ended = ask_ranks(SCRIPT, [str(path), how, str(temperature), dtype or ""], size)
    assert [each.code for each in ended] == [0] * size, "\n".join(each.err for each in ended)
    return [json.loads(each.out) for each in ended]


@pytest.mark.parametrize(
    ("name", "config", "how", "size"),
    [
        ("llama", None, "tensor", 2),
        pytest.param("llama", TIED, "tensor", 2, marks=pytest.mark.thorough),
        ("llama", BIASED, "tensor", 2),
        pytest.param("qwen3_moe", None, "tensor", 2, marks=pytest.mark.thorough),
        ("mixtral", None, "tensor", 2),
        ("qwen3_moe", None, json.dumps(EXPERTS), 2),
        pytest.param("mistral", None, "pipeline", 2, marks=pytest.mark.thorough),
        ("qwen3_moe", None, "pipeline", 3),
    ],
)
def test_ranks_give_what_one_process_gives(
    tmp_path: Path, name: str, config: Mapping[str, Any] | None, how: str, size: int
) -> None:
    path = write_model(tmp_path / "model", name, config)
    m, ids = load(path), list(range(5, 17))
    logits = np.array(m.model(mx.array([ids, ids[::-1]])))
    wanted = list(generate_ids(m, ids, 8))
    for part in parts(path, how, size=size):
        np.testing.assert_allclose(np.array(part["logits"]), logits, atol=2e-4)
        assert part["ids"] == wanted
        assert part["held"] < part["whole"]


@pytest.mark.parametrize("how", ["tensor", pytest.param("pipeline", marks=pytest.mark.thorough)])
def test_a_cast_is_cut_too(tmp_path: Path, how: str) -> None:
    path = write_model(tmp_path / "model", "qwen3_moe")
    m, ids = load(path, "float32"), list(range(5, 17))
    narrow = tmp_path / "narrow"
    load(path, "bfloat16").save(narrow, layout="hf")
    wanted = np.array(load(narrow, "float32").model(mx.array([ids, ids[::-1]])))
    assert np.abs(np.array(m.model(mx.array([ids, ids[::-1]]))) - wanted).max() > 1e-3
    for part in parts(narrow, how, dtype="float32"):
        np.testing.assert_allclose(np.array(part["logits"]), wanted, atol=2e-4)
        assert part["held"] < part["whole"]


@pytest.mark.parametrize("how", ["tensor", pytest.param("pipeline", marks=pytest.mark.thorough)])
def test_packed_weights_are_cut_between_groups(tmp_path: Path, how: str) -> None:
    sizes = {"hidden_size": 128, "intermediate_size": 64, "num_hidden_layers": 2}
    path = packed_llama(tmp_path / "model", **sizes)
    m, ids = load(path), list(range(5, 17))
    wanted = np.array(m.model(mx.array([ids, ids[::-1]])).astype(mx.float32))
    for part in parts(path, how):
        np.testing.assert_allclose(np.array(part["logits"]), wanted, atol=5e-3)
        assert part["held"] < part["whole"]


@pytest.mark.parametrize(
    ("name", "recipe", "how"),
    [
        ("llama", "mxfp4", "tensor"),
        ("qwen3_moe", "nvfp4", "pipeline"),
        pytest.param("llama", "mxfp4", "pipeline", marks=pytest.mark.thorough),
        pytest.param("qwen3_moe", "nvfp4", "tensor", marks=pytest.mark.thorough),
    ],
)
def test_blocks_of_floats_are_cut_between_groups(tmp_path: Path, name: str, recipe: str, how: str) -> None:
    order = Order(tmp_path / "packed", quantizing=asked_quantizing(recipe))
    convert(packable(tmp_path / "plain", name), order, Wish())
    m, ids = load(tmp_path / "packed"), list(range(5, 17))
    wanted = np.array(m.model(mx.array([ids, ids[::-1]])))
    for part in parts(tmp_path / "packed", how):
        np.testing.assert_allclose(np.array(part["logits"]), wanted, atol=5e-3)
        assert part["held"] < part["whole"]


def test_stages_of_a_narrow_model_give_the_same_bits(tmp_path: Path) -> None:
    path = tmp_path / "narrow"
    load(write_model(tmp_path / "model", "mistral"), "bfloat16").save(path, layout="hf")
    m, ids = load(path), list(range(5, 17))
    wanted = np.array(m.model(mx.array([ids, ids[::-1]])).astype(mx.float32))
    for part in parts(path, "pipeline"):
        np.testing.assert_array_equal(np.array(part["logits"], np.float32), wanted)


@pytest.mark.case("C76")
def test_a_cut_through_the_one_group_of_a_row_is_refused(tmp_path: Path) -> None:
    order = Order(tmp_path / "packed", quantizing=asked_quantizing("4bit"))
    convert(packable(tmp_path / "plain"), order, Wish())
    ended = ask_ranks(SCRIPT, [str(tmp_path / "packed"), "tensor", "0.0", ""])
    assert all(each.code != 0 and "lies inside group 0" in each.err for each in ended)


def test_a_vocabulary_that_does_not_divide_is_whole_and_said_so(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model", "llama", config_of("llama", vocab_size=261))
    m, ids = load(path), list(range(5, 17))
    for part in parts(path, "tensor"):
        assert part["ids"] == list(generate_ids(m, ids, 8))
        assert "lm_head.weight is whole on each rank: 261 rows do not divide by 2" in part["notes"]


def test_ranks_that_sample_agree_without_a_seed(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model", "llama")
    first, second = parts(path, "tensor", temperature=5.0)
    assert first["ids"] == second["ids"]


def test_heads_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model", "llama", config_of("llama", num_key_value_heads=1))
    ended = run_ranks(path, ["-m", "weightloom.runtime", "generate", str(path), "-p", "x"])
    for each in ended:
        assert each.code == 1
        assert "self_attn has 1 num_key_value_heads" in each.err
        assert "--parallel pipeline" in each.err


def documented(script: Path, model: Path) -> list[str]:
    """Give the command that the documentation shows, on another model."""
    shown = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("$ mlx.launch"))
    words = shlex.split(shown.removeprefix("$ ").replace('"$(command -v weightloom)"', shlex.quote(str(script))))
    launch = shutil.which(words[0], path=str(Path(sys.executable).parent))
    assert launch is not None
    port = str(free_ports(1)[0])
    return [launch, "--starting-port", port, *(str(model) if word == "SmolLM2" else word for word in words[1:])]


def test_the_command_speaks_once_and_says_what_each_rank_read(tmp_path: Path, cli: Cli) -> None:
    path = runnable(tmp_path / "model", num_attention_heads=6, num_key_value_heads=3, hidden_size=48)
    script = tmp_path / "weightloom"
    script.write_text(f"#!{sys.executable}\nfrom weightloom.runtime.cli import main\nraise SystemExit(main())\n")
    script.chmod(0o755)
    for more in ([], ["--parallel", "pipeline"]):
        command = [*documented(script, path), *more]
        alone = cli(*command[command.index("generate") :])
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.strip() == alone.out.strip()
        for rank in range(3):
            assert f"rank {rank} of 3: holds " in ran.stderr
        assert ", read " in ran.stderr or not Path("/proc/self/io").exists()


def test_a_part_of_a_model_is_not_loaded_alone_nor_saved(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model", "llama")
    with pytest.raises(UsageError, match="started alone"):
        load(path, sharding="tensor")
    with pytest.raises(UsageError, match=r"sharding 'rows'\n.*a Sharding, or one of tensor, pipeline"):
        load(path, sharding="rows")  # type: ignore[arg-type]
    code = (
        "import sys; from weightloom.runtime import load; m = load(sys.argv[1], sharding='pipeline')\n"
        "try: m.save(sys.argv[2])\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    for each in run_ranks(path, ["-c", code, str(path), str(tmp_path / "saved")]):
        assert each.out.startswith("UsageError this process holds a part of the model"), each.err
    assert not (tmp_path / "saved").exists()


def test_a_sharding_that_cuts_nothing_is_refused(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model", "llama")
    for each in ask_ranks(SCRIPT, [str(path), '{"nosuch": "column"}', "0", ""]):
        assert each.code != 0
        assert "cuts no parameter of llama" in each.err


def test_what_cannot_be_cut_says_so(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model", "bert")
    for how, words in (("tensor", "does not say how its parameters are cut"), ("pipeline", "cannot be run by stages")):
        code = f"import sys; from weightloom.runtime import load; load(sys.argv[1], sharding={how!r})"
        for each in run_ranks(path, ["-c", code, str(path)]):
            assert each.code != 0
            assert words in each.err
