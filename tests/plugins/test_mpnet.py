"""MPNet: the buckets of distances, said one by one, and files that older releases wrote."""

from math import log
from pathlib import Path

import mlx.core as mx
import numpy as np

from tests.families.encoders import BERT
from tests.runtime.models import write_model
from weightloom.plugins.architectures.mpnet import buckets
from weightloom.runtime import load

CONFIG = {"model_type": "mpnet", "architectures": ["MPNetModel"], **BERT, "torch_dtype": "float32"}


def bucket(query: int, key: int) -> int:
    far = abs(key - query)
    within = far if far < 8 else min(8 + int(log(far / 8) / log(128 / 8) * 8 + 1e-9), 15)
    return within + (16 if key > query else 0)


def test_buckets() -> None:
    length = 150
    wanted = [[bucket(query, key) for key in range(length)] for query in range(length)]
    assert np.array_equal(np.array(buckets(length)), wanted)


def test_numbers_of_positions_in_older_files_are_left_out(tmp_path: Path) -> None:
    path = write_model(tmp_path, "mpnet", CONFIG)
    arrays = mx.load(str(path / "model.safetensors"))
    mx.eval(arrays)
    numbers = mx.arange(64, dtype=mx.int64)[None]
    mx.save_safetensors(str(path / "model.safetensors"), {**arrays, "embeddings.position_ids": numbers})
    m = load(path)
    assert [record.name for record in m.report.dropped] == ["embeddings.position_ids"]
    assert m.model.max_length == 62
