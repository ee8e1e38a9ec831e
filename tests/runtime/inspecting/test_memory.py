"""inspect --estimate-memory: what headers foretell, against what a model that was loaded and run really holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

import weightloom as wl
from tests.plugins.installed import install
from tests.runtime.loading.seeing import SEEN_BYTES, install_seeing, write_seeing
from tests.runtime.models import config_of, write_model
from tests.runtime.support import Cli
from weightloom.engine.errors import UsageError
from weightloom.plugins.modules.binding import parameters
from weightloom.plugins.modules.caches_to_come import held
from weightloom.runtime import load

MIXED = {"layer_types": ["full_attention", "sliding_attention", "full_attention"], "sliding_window": 6}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "full": ("llama", {}),
    "sliding": ("mistral", {}),
    "mixed": ("llama", MIXED),
    "experts": ("qwen3_moe", {}),
    "tied": ("llama", {"tie_word_embeddings": True}),
}


def quantized(folder: Path) -> Path:
    """Pack every matrix of a model in four bits, scales in half precision."""
    arrays = mx.load(str(folder / "model.safetensors"))
    assert isinstance(arrays, dict)
    packed: dict[str, mx.array] = {}
    for name, array in arrays.items():
        path = name.removesuffix(".weight")
        if array.ndim == 2 and array.shape[-1] % 32 == 0:
            parts = mx.quantize(array.astype(mx.float16), group_size=32, bits=4)
            packed |= dict(zip((f"{path}.weight", f"{path}.scales", f"{path}.biases"), parts, strict=True))
        else:
            packed[name] = array.astype(mx.float16)
    mx.save_safetensors(str(folder / "model.safetensors"), packed)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization": {"bits": 4, "group_size": 32}}))
    return folder


def assert_as_foreseen(path: Path, context: int, batch: int, **asked: str) -> None:
    """Compare parameters and caches, kind by kind, with those of the model after a prefill."""
    need = wl.inspect(path, estimate_memory=True, context=context, batch=batch, **asked).memory
    assert need is not None and need.cache is not None and need.cache.unknown is None
    m = load(path, **asked)
    caches = m.model.make_cache()
    mx.eval(m.model(mx.ones((batch, context), mx.int32), caches))
    assert need.caches == need.cache.nbytes == held(caches)
    for each in need.cache.kinds:
        of_kind = [cache for cache in caches if cache.kind == each.kind]
        assert (len(of_kind), held(of_kind)) == (each.layers, each.nbytes)
    assert need.params == sum({id(a): a.nbytes for a in parameters(m.model).values()}.values())
    assert need.peak == need.params + need.scratch <= need.total
    assert need.total == max(need.peak, need.params + need.cache.nbytes)


@pytest.mark.parametrize(("context", "batch"), [(1, 1), (5, 3), (300, 1)])
@pytest.mark.parametrize("name", list(MODELS))
def test_caches_and_parameters_are_foretold_exactly(tmp_path: Path, name: str, context: int, batch: int) -> None:
    family, changes = MODELS[name]
    assert_as_foreseen(write_model(tmp_path, family, config_of(family, **changes)), context, batch)


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_of_quantized_and_cast_models_too(tmp_path: Path, family: str) -> None:
    """The dtype of the cache follows from the layers: scales that were widened, or a cast."""
    assert_as_foreseen(write_model(tmp_path / "cast", family), 40, 2, dtype="bfloat16")
    assert_as_foreseen(quantized(write_model(tmp_path / "packed", family, config_of(family, vocab_size=256))), 40, 2)


@pytest.mark.parametrize("asked", [{"quantize": "4bit"}, {"quantize": "8bit", "dtype": "float16"}])
def test_what_a_load_would_pack_is_foretold(tmp_path: Path, asked: dict[str, str]) -> None:
    sizes = {"hidden_size": 64, "intermediate_size": 64, "vocab_size": 256}
    assert_as_foreseen(write_model(tmp_path, "llama", config_of("llama", **sizes)), 40, 1, **asked)


def test_towers_are_stated_apart(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    install_seeing(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    path = write_seeing(tmp_path / "model")
    ran = cli("inspect", path, "--estimate-memory", "--json")
    assert ran.data["memory"]["idle"] == SEEN_BYTES
    assert "in towers, which are read when they are first used" in cli("inspect", path, "--estimate-memory").out


def test_kinds_are_stated_apart(tmp_path: Path, cli: Cli) -> None:
    path = write_model(tmp_path, "llama", config_of("llama", **MIXED))
    line = ["inspect", path, "--estimate-memory", "--context", "300", "--batch", "2"]
    memory = cli(*line, "--json").data["memory"]
    kinds = {each["kind"]: each for each in memory["cache"]["kinds"]}
    # Keys and values of 2 heads of 8, in F32; full caches grow by 256 tokens, a ring holds its window.
    assert kinds["full"] == {"kind": "full", "layers": 2, "dtypes": ["F32"], "nbytes": 2 * 2 * 2 * 2 * 512 * 8 * 4}
    assert kinds["window of 6"]["nbytes"] == 2 * 2 * 2 * 6 * 8 * 4
    assert (memory["cache"]["context"], memory["cache"]["batch"]) == (300, 2)
    out = cli(*line).out
    assert "2 layers, full, F32" in out and "1 layer, window of 6, F32" in out and "in all" in out


def test_nothing_is_read_or_computed_for_a_long_context(tmp_path: Path) -> None:
    """131,072 tokens of 8 sequences: gigabytes of cache, and next to nothing is allocated to say so."""
    path = write_model(tmp_path, "llama", config_of("llama", max_position_embeddings=131072))
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    need = wl.inspect(path, estimate_memory=True, context=131072, batch=8).memory
    assert need is not None and need.cache is not None and need.cache.nbytes == 3 * 2 * 8 * 2 * 131072 * 8 * 4
    assert mx.get_peak_memory() - before < 1_000_000


def test_the_peak_of_a_load_has_the_scratch_of_its_threads(tmp_path: Path) -> None:
    path = write_model(tmp_path, "qwen3_moe")
    need = wl.inspect(path, estimate_memory=True).memory
    assert need is not None and need.cache is None and need.total == need.peak >= need.params


def test_what_keeps_nothing_and_what_is_not_installed_say_so(tmp_path: Path, cli: Cli) -> None:
    bert = write_model(tmp_path / "bert", "bert")
    assert "keeps nothing from call to call" in cli("inspect", bert, "--estimate-memory", "--context", "9").out
    other = write_model(tmp_path / "other", "llama")
    line = ["inspect", other, "--estimate-memory", "--context", "9", "--open-target"]
    assert "of the cache for 9 tokens nothing is known" in cli(*line).out
    assert cli(*line, "--json").data["memory"]["cache"]["unknown"]


@pytest.mark.parametrize(
    "more",
    [
        ["--context", "0"],
        ["--context", "9", "--batch", "0"],
        ["--dtype", "int8"],
        ["--quantize", "4bit", "--open-target"],
    ],
)
def test_what_cannot_be_asked(tmp_path: Path, cli: Cli, more: list[str]) -> None:
    path = write_model(tmp_path, "llama")
    assert cli("inspect", path, "--estimate-memory", *more).code == 2


def test_details_of_no_estimate_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no estimate of memory"):
        wl.inspect(write_model(tmp_path, "llama"), context=9)


ODD = """
from dataclasses import replace
import mlx.core as mx
from weightloom.plugins import hookimpl
from weightloom.plugins.architectures.llama import LLAMA, build
class Odd:
    def __init__(self, inner):
        self.parts = {"inner": [inner]}
    @property
    def offset(self):
        return self.parts["inner"][0].offset
    def update(self, keys, values):
        return self.parts["inner"][0].update(keys, values)
def made(config):
    module = build(config)
    plain = module.make_cache
    module.make_cache = lambda: [Odd(each) for each in plain()]
    return module
class Plugin:
    @hookimpl
    def weightloom_architectures(self):
        return [replace(LLAMA, name="odd", model_types=("odd",), class_names=(), build=made)]
PLUGIN = Plugin()
"""


def test_a_stranger_s_cache_is_measured_by_what_it_holds(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache class that says nothing of itself goes by its name."""
    install(tmp_path / "site", "odd", {"odd": "odd_caches:PLUGIN"}, {"odd_caches": ODD})
    monkeypatch.syspath_prepend(tmp_path / "site")
    plain = write_model(tmp_path / "m", "llama")
    wanted = wl.inspect(plain, estimate_memory=True, context=20).memory
    config = json.loads((plain / "config.json").read_text())
    (plain / "config.json").write_text(json.dumps({**config, "model_type": "odd"}))
    ran = cli("inspect", plain, "--estimate-memory", "--context", "20", "--json")
    (kind,) = ran.data["memory"]["cache"]["kinds"]
    assert kind["kind"] == "Odd" and wanted is not None and wanted.cache is not None
    assert kind["nbytes"] == wanted.cache.nbytes
