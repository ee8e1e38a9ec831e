"""What is found of each format: whether others take a weight for the same numbers, and load what is made of it.

`python -m tests.oracle.vendor_formats.findings` prints the table.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mlx.core as mx
import numpy as np

import weightloom as wl
from tests.oracle.vendor_formats.readers import READERS, Parts
from tests.plugins.formats.codes import Array, write
from tests.plugins.formats.vendors import VENDORS, Made, make
from weightloom.engine import Checkpoint
from weightloom.plugins.discovery.format_manager import FormatManager
from weightloom.plugins.quantization import Stored
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Order, convert

IDS = [[1, 5, 7, 2]]
WEIGHT = np.random.default_rng(4).standard_normal((192, 320), dtype=np.float32)
# What mlx-lm's readers ask a config for, beside what is there.
MLX_LM = {"rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": False}


def ours(parts: Parts, kind: str, folder: Path) -> Array:
    """The numbers of a weight by the coding that its format gives it, in 32 bits."""
    path = folder / "model.safetensors"
    write(path, {f"a.{end}": part for end, part in parts.items()})
    with Checkpoint.open(path) as checkpoint:
        stored = Stored(dict(VENDORS[kind].section or {}), checkpoint.logical)
        found = FormatManager().find(stored)
        assert found is not None
        (module,) = found[0].unpack(stored, True).modules
        held = {f"a.{end}": mx.array(part.array) for end, part in parts.items()}
        coding: Any = module.packed.rule.operations[0]
        return np.array(coding.coding.values(tuple(held[name] for name in module.packed.sources)))


def same_numbers(kind: str, folder: Path) -> bool:
    """Whether the other package reads them so, to the last bits of 32."""
    coded = VENDORS[kind].code(WEIGHT)
    theirs = READERS[kind].read(coded.parts) if kind in READERS else coded.values
    return bool(np.allclose(ours(coded.parts, kind, folder), theirs, rtol=1e-6, atol=1e-12))


def comes_back(made: Made, folder: Path) -> bool:
    """Whether a model that is loaded and saved is the same file."""
    wl.load(made.path).save(folder)
    name = "model.safetensors"
    return (folder / name).read_bytes() == (made.path / name).read_bytes()


def loads_in_mlx_lm(made: Made, folder: Path) -> bool:
    """Whether mlx-lm loads, strictly, what is converted to its layout, and finds the same logits."""
    from mlx_lm.utils import load_model

    convert(made.path, Order(folder, "mlx"), Wish())
    peer: Any = load_model(folder)[0]
    peer.set_dtype(mx.float32)
    found, expected = (np.array(model(mx.array(IDS))) for model in (wl.load(folder).model, peer))
    return bool(np.allclose(found, expected, rtol=0, atol=1e-2 * np.abs(expected).max()))


def main() -> None:
    print("| format | held against | values equal | round trip equal | loads in mlx-lm |\n|---|---|---|---|---|")
    for kind in VENDORS:
        reader = READERS.get(kind)
        package = "the document" if reader is None else reader.package
        with TemporaryDirectory() as name:
            folder = Path(name)
            there = reader is None or find_spec(reader.package) is not None
            equal = same_numbers(kind, folder) if there else "not installed"
            made = make(folder / "made", "llama", VENDORS[kind], **MLX_LM)
            back, loads = comes_back(made, folder / "back"), loads_in_mlx_lm(made, folder / "mlx")
        print(f"| {kind} | {package} | {equal} | {back} | {loads} |")


if __name__ == "__main__":
    main()
