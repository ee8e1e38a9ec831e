"""What tests read of a checkpoint."""

from __future__ import annotations

import numpy as np

from weightloom.engine.checkpoints.checkpoint import Checkpoint


def data_of(checkpoint: Checkpoint, name: str) -> bytes:
    buffer = bytearray(checkpoint.tensors[name].nbytes)
    checkpoint.read_into(name, 0, memoryview(buffer))
    return bytes(buffer)


def value_of(checkpoint: Checkpoint, name: str) -> float:
    return float(np.frombuffer(data_of(checkpoint, name), np.float32)[0])
