"""One rank of several, with an adapter fused into its part: say what came out, as JSON."""

import json
import sys
from typing import Any

import mlx.core as mx

from weightloom.runtime import Fusing, LossPolicy, load

TOKENS = mx.array([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]])


def main(path: str, adapter: str, how: Any, when_lost: Any) -> None:
    m = load(path, sharding=how, adapter=Fusing(adapter, LossPolicy(when_lost, 0.01)))
    print(json.dumps(m.model(TOKENS).tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
