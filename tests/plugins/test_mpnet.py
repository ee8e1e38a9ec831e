"""MPNet: the buckets of distances, said one by one."""

from math import log

import numpy as np

from weightloom.plugins.architectures.mpnet import buckets


def bucket(query: int, key: int) -> int:
    far = abs(key - query)
    within = far if far < 8 else min(8 + int(log(far / 8) / log(128 / 8) * 8 + 1e-9), 15)
    return within + (16 if key > query else 0)


def test_buckets() -> None:
    length = 150
    wanted = [[bucket(query, key) for key in range(length)] for query in range(length)]
    assert np.array_equal(np.array(buckets(length)), wanted)
